package proxyproto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	golog "log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
)

var (
	proxyAddr = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1001}
	otherAddr = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 1002}
)

// head is a header that names the client 198.51.100.7:12345.
const head = "0d0a0d0a000d0a515549540a 2112000c c6336407 c0000202 3039 0035"

// octets reads hexadecimal digits with spaces between them.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// datagram is one that is to be read.
type datagram struct {
	from    net.Addr
	content string // hexadecimal
}

// fake is a connection on which datagrams come, and then net.ErrClosed. It notes what is written.
type fake struct {
	net.PacketConn
	t       *testing.T
	mu      sync.Mutex
	in      []datagram
	written string
	to      net.Addr
}

func (f *fake) ReadFrom(p []byte) (int, net.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.in) == 0 {
		return 0, nil, net.ErrClosed
	}
	d := f.in[0]
	f.in = f.in[1:]
	return copy(p, octets(f.t, d.content)), d.from, nil
}

func (f *fake) WriteTo(p []byte, addr net.Addr) (int, error) {
	f.written, f.to = string(p), addr
	return len(p), nil
}

func (f *fake) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 53), Port: 53} }

// always returns a policy that does not look.
func always(p proxyproto.Policy) proxyproto.ConnPolicyFunc {
	return func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return p, nil }
}

// captureLog returns what is logged during the test.
func captureLog(t *testing.T) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	out, flags := golog.Writer(), golog.Flags()
	golog.SetOutput(&b)
	golog.SetFlags(0)
	t.Cleanup(func() {
		golog.SetOutput(out)
		golog.SetFlags(flags)
	})
	return &b
}

// readAll returns what c has to read, each as "content from address".
func readAll(t *testing.T, c *PacketConn) []string {
	t.Helper()
	var got []string
	for {
		p := make([]byte, 512)
		n, addr, err := c.ReadFrom(p)
		if errors.Is(err, net.ErrClosed) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, hex.EncodeToString(p[:n])+" "+addr.String())
	}
}

func TestPolicies(t *testing.T) {
	const (
		bare    = "aa 192.0.2.1:1001"
		used    = "aa 198.51.100.7:12345"
		ignored = bare
		dropped = ""
	)
	skipped := strings.ReplaceAll(head, " ", "") + bare
	for _, tc := range []struct {
		name                string
		policy              proxyproto.ConnPolicyFunc
		withHeader, without string
		warning             string
	}{
		{"nil", nil, used, bare, ""},
		{"use", always(proxyproto.USE), used, bare, ""},
		{"ignore", always(proxyproto.IGNORE), ignored, bare, ""},
		{"reject", always(proxyproto.REJECT), dropped, bare, "isn't allowed to send one"},
		{"require", always(proxyproto.REQUIRE), used, dropped, "signature not present"},
		{"skip", always(proxyproto.SKIP), skipped, bare, ""},
		{"failing", func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return proxyproto.REJECT, errors.New("who is that")
		}, dropped, dropped, "who is that"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := captureLog(t)
			f := &fake{t: t, in: []datagram{{proxyAddr, head + "aa"}, {proxyAddr, "aa"}}}
			c := &PacketConn{PacketConn: f, ConnPolicy: tc.policy}
			var want []string
			for _, w := range []string{tc.withHeader, tc.without} {
				if w != dropped {
					want = append(want, w)
				}
			}
			if got := readAll(t, c); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("got %q, want %q", got, want)
			}
			if tc.warning == "" && out.Len() > 0 || !strings.Contains(out.String(), tc.warning) {
				t.Errorf("got log %q, want %q", out, tc.warning)
			}
		})
	}
}

func TestPolicyKnowsBothAddresses(t *testing.T) {
	f := &fake{t: t, in: []datagram{{proxyAddr, "aa"}}}
	var got proxyproto.ConnPolicyOptions
	c := &PacketConn{PacketConn: f, ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		got = o
		return proxyproto.USE, nil
	}}
	readAll(t, c)
	if got.Upstream != proxyAddr || got.Downstream.String() != "192.0.2.53:53" {
		t.Errorf("got %v, %v", got.Upstream, got.Downstream)
	}
}

func TestValidateHeader(t *testing.T) {
	out := captureLog(t)
	refuse := func(h *proxyproto.Header) error {
		if h.SourceAddr.String() == "198.51.100.7:12345" {
			return errors.New("not this client")
		}
		return nil
	}
	const other = "0d0a0d0a000d0a515549540a 2112000c c6336408 c0000202 3039 0035"
	in := []datagram{{proxyAddr, head + "aa"}, {proxyAddr, other + "bb"}, {proxyAddr, "cc"}}
	c := &PacketConn{PacketConn: &fake{t: t, in: in}, ValidateHeader: refuse}
	if got := strings.Join(readAll(t, c), "|"); got != "bb 198.51.100.8:12345|cc 192.0.2.1:1001" {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(out.String(), "not this client") {
		t.Errorf("got log %q", out)
	}
	// A header that is not used need not be valid.
	c = &PacketConn{PacketConn: &fake{t: t, in: in[:1]}, ValidateHeader: refuse, ConnPolicy: always(proxyproto.IGNORE)}
	if got := strings.Join(readAll(t, c), "|"); got != "aa 192.0.2.1:1001" {
		t.Errorf("ignoring: got %q", got)
	}
}

func TestReplyGoesToTheProxy(t *testing.T) {
	f := &fake{t: t, in: []datagram{{proxyAddr, head + "aa"}}}
	c := &PacketConn{PacketConn: f}
	_, addr, err := c.ReadFrom(make([]byte, 512))
	if err != nil {
		t.Fatal(err)
	}
	a, ok := addr.(*Addr)
	if !ok || a.Network() != "udp" || a.String() != "198.51.100.7:12345" {
		t.Fatalf("got %T %v", addr, addr)
	}
	if u := a.Client(); len(u.IP) != net.IPv4len || !u.IP.Equal(net.IPv4(198, 51, 100, 7)) || u.Port != 12345 {
		t.Errorf("got %v", u)
	}
	for _, to := range []net.Addr{addr, proxyAddr} {
		if n, err := c.WriteTo([]byte("reply"), to); n != 5 || err != nil || f.written != "reply" || f.to != proxyAddr {
			t.Errorf("got %d, %v; %q went to %v", n, err, f.written, f.to)
		}
	}
}

func TestIPv6Client(t *testing.T) {
	const head6 = "0d0a0d0a000d0a515549540a 21220024 20010db8000000000000000000000001 20010db8000000000000000000000002 3039 0035"
	c := &PacketConn{PacketConn: &fake{t: t, in: []datagram{{proxyAddr, head6 + "aa"}}}}
	_, addr, err := c.ReadFrom(make([]byte, 512))
	if err != nil || addr.String() != "[2001:db8::1]:12345" || len(addr.(*Addr).Client().IP) != net.IPv6len {
		t.Errorf("got %v, %v", addr, err)
	}
}

func TestHeaderTakesNoRoom(t *testing.T) {
	long := strings.Repeat("ab", 512)
	c := &PacketConn{PacketConn: &fake{t: t, in: []datagram{{proxyAddr, head + long}, {proxyAddr, long + "cd"}}}}
	for range 2 {
		p := make([]byte, 512)
		if n, _, err := c.ReadFrom(p); n != 512 || err != nil || hex.EncodeToString(p) != long {
			t.Errorf("got %d octets, %v", n, err)
		}
	}
}

func TestBrokenHeadersAreDropped(t *testing.T) {
	for name, tc := range map[string]struct{ content, warning string }{
		"signature only":   {"0d0a0d0a000d0a515549540a", "can't read length"},
		"fixed part cut":   {"0d0a0d0a000d0a515549540a 211200", "can't read length"},
		"addresses cut":    {"0d0a0d0a000d0a515549540a 2112000c c6336407 c0000202 3039 00", "invalid length"},
		"length too short": {"0d0a0d0a000d0a515549540a 2112000b c6336407 c0000202 3039 0035 aa", "invalid length"},
		"version 3":        {"0d0a0d0a000d0a515549540a 3112000c c6336407 c0000202 3039 0035 aa", "unsupported proxy protocol version"},
		"command 2":        {"0d0a0d0a000d0a515549540a 2212000c c6336407 c0000202 3039 0035 aa", "unsupported proxy protocol version and command"},
		"tcp":              {"0d0a0d0a000d0a515549540a 2111000c c6336407 c0000202 3039 0035 aa", "not that of a UDP datagram"},
		"unspecified":      {"0d0a0d0a000d0a515549540a 2100000c c6336407 c0000202 3039 0035 aa", "not that of a UDP datagram"},
		"v4 called v6":     {"0d0a0d0a000d0a515549540a 2122000c c6336407 c0000202 3039 0035 aa", "invalid length"},
		"nothing follows":  {head, "nothing follows the header"},
	} {
		t.Run(name, func(t *testing.T) {
			out := captureLog(t)
			f := &fake{t: t, in: []datagram{{proxyAddr, tc.content}, {otherAddr, "bb"}}}
			if got := strings.Join(readAll(t, &PacketConn{PacketConn: f}), "|"); got != "bb 192.0.2.2:1002" {
				t.Errorf("got %q", got)
			}
			want := "[WARNING] dropping invalid Proxy Protocol packet from 192.0.2.1:1001: "
			if !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), tc.warning) {
				t.Errorf("got log %q, want %s… %s", out, want, tc.warning)
			}
		})
	}
}

func TestLocalAndAdditionalFields(t *testing.T) {
	out := captureLog(t)
	f := &fake{t: t, in: []datagram{
		{proxyAddr, "0d0a0d0a000d0a515549540a 20000000 aa"},
		{proxyAddr, "0d0a0d0a000d0a515549540a 2012000c c6336407 c0000202 3039 0035 bb"},
		{proxyAddr, "0d0a0d0a000d0a515549540a 20000000"}, // nothing follows: a sign of life
		{proxyAddr, "0d0a0d0a000d0a515549540a 21120010 c6336407 c0000202 3039 0035 04000100 cc"},
		{proxyAddr, "50524f5859205544500d0a"}, // version 1 is no header here
	}}
	want := "aa 192.0.2.1:1001|bb 192.0.2.1:1001|cc 198.51.100.7:12345|50524f5859205544500d0a 192.0.2.1:1001"
	if got := strings.Join(readAll(t, &PacketConn{PacketConn: f}), "|"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if out.Len() > 0 {
		t.Errorf("got log %q", out)
	}
}

func TestSessionTracking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := captureLog(t)
		f := &fake{t: t}
		c := &PacketConn{PacketConn: f, UDPSessionTrackingTTL: time.Minute}
		read := func(in ...datagram) string {
			f.in = in
			return strings.Join(readAll(t, c), "|")
		}

		if got := read(datagram{proxyAddr, head}, datagram{proxyAddr, "aa"}, datagram{otherAddr, "bb"}); got != "aa 198.51.100.7:12345|bb 192.0.2.2:1002" {
			t.Errorf("got %q", got)
		}
		for range 3 { // every datagram makes the session last
			time.Sleep(59 * time.Second)
			if got := read(datagram{proxyAddr, "cc"}); got != "cc 198.51.100.7:12345" {
				t.Errorf("got %q", got)
			}
		}
		time.Sleep(time.Minute)
		if got := read(datagram{proxyAddr, "dd"}); got != "dd 192.0.2.1:1001" {
			t.Errorf("the session is over: got %q", got)
		}
		if out.Len() > 0 {
			t.Errorf("got log %q", out)
		}
	})
}

func TestSessionTrackingAndPolicies(t *testing.T) {
	captureLog(t)
	for policy, want := range map[proxyproto.Policy]string{
		proxyproto.USE:     "aa 198.51.100.7:12345",
		proxyproto.REQUIRE: "aa 198.51.100.7:12345",
		proxyproto.IGNORE:  "aa 192.0.2.1:1001",
		proxyproto.REJECT:  "aa 192.0.2.1:1001",
	} {
		f := &fake{t: t, in: []datagram{{proxyAddr, head}, {proxyAddr, "aa"}}}
		c := &PacketConn{PacketConn: f, UDPSessionTrackingTTL: time.Minute, ConnPolicy: always(policy)}
		if got := strings.Join(readAll(t, c), "|"); got != want {
			t.Errorf("policy %d: got %q, want %q", policy, got, want)
		}
	}
}

func TestWarningsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := captureLog(t)
		f := &fake{t: t}
		c := &PacketConn{PacketConn: f}
		flood := func(n int) {
			for range n {
				f.in = append(f.in, datagram{proxyAddr, head})
			}
			readAll(t, c)
		}
		flood(1000)
		time.Sleep(10 * time.Second)
		flood(1000)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || strings.Contains(lines[0], "more") || !strings.HasSuffix(lines[1], "(and 999 more)") {
			t.Errorf("got %q", lines)
		}
	})
}

// TestOverLoopback plays proxy and client over real sockets.
func TestOverLoopback(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &PacketConn{PacketConn: conn, UDPSessionTrackingTTL: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			p := make([]byte, 512)
			_, addr, err := server.ReadFrom(p)
			if err != nil {
				return
			}
			_, _ = server.WriteTo([]byte(addr.String()), addr)
		}
	})
	defer wg.Wait()
	defer server.Close()

	proxy, err := net.Dial("udp", conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	if err := proxy.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ content, want string }{
		{"aa", proxy.LocalAddr().String()},
		{head + "aa", "198.51.100.7:12345"},
		{"aa", proxy.LocalAddr().String()},
		{head, ""},
		{"aa", "198.51.100.7:12345"},
	} {
		if _, err := proxy.Write(octets(t, tc.content)); err != nil {
			t.Fatal(err)
		}
		if tc.want == "" {
			continue
		}
		p := make([]byte, 512)
		n, err := proxy.Read(p)
		if err != nil || string(p[:n]) != tc.want {
			t.Errorf("%s: the server sees %q, %v, want %q", tc.content, p[:n], err, tc.want)
		}
	}
}

func TestOpen(t *testing.T) {
	captureLog(t)
	policies := map[netip.Addr]proxyproto.Policy{
		netip.MustParseAddr("192.0.2.1"): proxyproto.USE,
		netip.MustParseAddr("192.0.2.2"): proxyproto.IGNORE,
		netip.MustParseAddr("192.0.2.3"): proxyproto.REJECT,
		netip.MustParseAddr("192.0.2.4"): proxyproto.SKIP,
	}
	refused := map[Reason]int{}
	c := &PacketConn{
		PacketConn: &fake{t: t}, UDPSessionTrackingTTL: time.Minute,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return policies[o.Upstream.(*net.UDPAddr).AddrPort().Addr()], nil
		},
		Refused: func(r Reason) { refused[r]++ },
	}
	const proxied = "198.51.100.7:12345"
	// An IPv4 client, as a proxy tells it that listens for both families on one socket.
	const mapped = "0d0a0d0a000d0a515549540a 21220024 00000000000000000000ffffc6336407 00000000000000000000ffffc0000202 3039 0035"
	for _, tc := range []struct{ from, in, payload, client string }{
		{"192.0.2.1:1", head + "aa", "aa", proxied},
		{"192.0.2.1:1", "aa", "aa", "192.0.2.1:1"},
		{"192.0.2.1:1", head, "", ""}, // begins a session
		{"192.0.2.1:1", "bb", "bb", proxied},
		{"192.0.2.1:2", "bb", "bb", "192.0.2.1:2"},
		{"192.0.2.1:3", mapped + "aa", "aa", proxied},
		{"192.0.2.2:1", head + "aa", "aa", "192.0.2.2:1"},
		{"192.0.2.3:1", head + "aa", "", ""},
		{"192.0.2.3:1", "aa", "aa", "192.0.2.3:1"},
		{"192.0.2.4:1", head + "aa", strings.ReplaceAll(head, " ", "") + "aa", "192.0.2.4:1"},
		{"192.0.2.1:1", head[:len(head)-5], "", ""},
	} {
		payload, client, ok := c.Open(octets(t, tc.in), netip.MustParseAddrPort(tc.from), time.Now())
		if ok != (tc.client != "") || ok && (client.String() != tc.client || hex.EncodeToString(payload) != tc.payload) {
			t.Errorf("%s from %s: got %x of %v, %t", tc.in, tc.from, payload, client, ok)
		}
	}
	if refused[Ignored] != 1 || refused[Rejected] != 1 || refused[Invalid] != 1 {
		t.Errorf("refused: %v", refused)
	}
}

// FuzzOpenAddr sends anything to all policies.
func FuzzOpenAddr(f *testing.F) {
	golog.SetOutput(io.Discard)
	f.Add(octets(f, head+"aa"), uint8(0))
	f.Add(octets(f, head), uint8(1))
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, policy uint8) {
		c := &PacketConn{PacketConn: &fake{}, ConnPolicy: always(proxyproto.Policy(policy % 5)), UDPSessionTrackingTTL: time.Minute}
		peer := netip.MustParseAddrPort("192.0.2.1:1001")
		payload, client, ok := c.Open(b, peer, time.Now())
		if ok && (!client.IsValid() || !bytes.HasSuffix(b, payload)) {
			t.Fatalf("%x, policy %d: %x of %v", b, policy, payload, client)
		}
		if trusted := policy%5 == uint8(proxyproto.USE) || policy%5 == uint8(proxyproto.REQUIRE); ok && !trusted && client != peer {
			t.Fatalf("%x, policy %d: the client is %v", b, policy, client)
		}
	})
}

func TestBuffers(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []*PacketConn{{PacketConn: conn}, {PacketConn: &fake{t: t}}} {
		if err := errors.Join(c.SetReadBuffer(1<<16), c.SetWriteBuffer(1<<16)); err != nil {
			t.Error(err)
		}
	}
	conn.Close()
	if err := (&PacketConn{PacketConn: conn}).SetReadBuffer(1 << 16); err == nil {
		t.Error("the connection's error is lost")
	}
}
