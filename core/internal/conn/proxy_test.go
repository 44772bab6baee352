package conn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// who answers with the client's address, in the wire lane unless the name begins with "u".
type who struct{}

func (who) Name() string               { return "who" }
func (h who) WireSelf() plugin.Handler { return h }

func (who) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch wire.FirstLabel(q.Lower())[0] {
	case 'u':
		return wire.Unpack
	case 'b':
		if !q.MayBlock() {
			return wire.Block
		}
	}
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 60, q.Client.Addr())
	return wire.Done
}

func (who) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	addr := addrOf(w.RemoteAddr())
	rr, err := dns.NewRR(fmt.Sprintf("%s 60 IN A %s", r.Question[0].Name, addr))
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	m.Answer = []dns.RR{rr}
	return 0, w.WriteMsg(m)
}

// policyOf is a policy that is the same for all.
func policyOf(p proxyproto.Policy) proxyproto.ConnPolicyFunc {
	return func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return p, nil }
}

func proxied(t *testing.T, scheme string, p proxyproto.Policy) *served {
	cfg := blockFor(t, scheme, who{})
	cfg.ProxyProtoConnPolicy = policyOf(p)
	cfg.ReadTimeout = 300 * time.Millisecond
	return serving(t, cfg)
}

func refusedHeaders(s *served) string {
	var b strings.Builder
	for _, why := range []string{"ignored", "rejected", "invalid"} {
		fmt.Fprintf(&b, " %v", testutil.ToFloat64(proxyRefused.WithLabelValues(s.base().Addr, why)))
	}
	return b.String()
}

// proxyDialer makes connections that begin with some octets.
func startWith(head string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			_, err = io.WriteString(c, head)
		}
		return c, err
	}
}

const (
	proxyV1    = "PROXY TCP4 198.51.100.7 192.0.2.2 12345 53\r\n"
	proxyV1No  = "PROXY UNKNOWN\r\n"
	proxyMagic = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
	proxyV2    = proxyMagic + "\x21\x11\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
	proxyV2TLV = proxyMagic + "\x21\x11\x00\x13\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35\x04\x00\x04aaaa"
	proxyLocal = proxyMagic + "\x20\x00\x00\x00"
	proxyUDP   = proxyMagic + "\x21\x12\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
)

func TestProxyHeaders(t *testing.T) {
	const told, real, none = "NOERROR 198.51.100.7", "NOERROR 127.0.0.1", "no answer"
	for _, tc := range []struct {
		name   string
		policy proxyproto.Policy
		head   string
		want   string
		counts string // ignored, rejected, invalid
	}{
		{"version 1", proxyproto.USE, proxyV1, told, " 0 0 0"},
		{"version 2", proxyproto.USE, proxyV2, told, " 0 0 0"},
		{"with TLV", proxyproto.USE, proxyV2TLV, told, " 0 0 0"},
		{"LOCAL", proxyproto.USE, proxyLocal, real, " 0 0 0"},
		{"UNKNOWN", proxyproto.USE, proxyV1No, real, " 0 0 0"},
		{"none", proxyproto.USE, "", real, " 0 0 0"},
		{"required", proxyproto.REQUIRE, proxyV2, told, " 0 0 0"},
		{"required, none", proxyproto.REQUIRE, "", none, " 0 0 1"},
		{"ignored", proxyproto.IGNORE, proxyV1, real, " 1 0 0"},
		{"ignored, none", proxyproto.IGNORE, "", real, " 0 0 0"},
		{"rejected", proxyproto.REJECT, proxyV2, none, " 0 1 0"},
		{"rejected, none", proxyproto.REJECT, "", real, " 0 0 0"},
		{"skipped, none", proxyproto.SKIP, "", real, " 0 0 0"},
		{"skipped", proxyproto.SKIP, proxyV1, none, " 0 0 0"},
		{"bad version 1", proxyproto.USE, "PROXY TCP4 nonsense\r\n", none, " 0 0 1"},
		{"bad version 2", proxyproto.USE, proxyMagic + "\x31\x11\x00\x0c", none, " 0 0 1"},
		{"ignored, bad", proxyproto.IGNORE, "PROXY TCP4 nonsense\r\n", none, " 0 0 1"},
	} {
		for _, name := range []string{"wire.", "unpack."} {
			proxyRefused.Reset()
			s := proxied(t, "dns", tc.policy)
			c := dial(t, s.addr)
			c.Write(append([]byte(tc.head), AddPrefix(packed(t, query(name)))...))
			got := none
			if b, err := clients.ReadFrame(c); err == nil {
				m := new(dns.Msg)
				if err := m.Unpack(b); err != nil {
					t.Fatal(err)
				}
				got = describe(m)
			}
			if counts := refusedHeaders(s); got != tc.want || counts != tc.counts {
				t.Errorf("%s, %s: got %s, counted%s", tc.name, name, got, counts)
			}
		}
	}
}

// TestProxyHeadersOfEachScheme has the header before whatever else the scheme begins with.
func TestProxyHeadersOfEachScheme(t *testing.T) {
	for _, scheme := range []string{"tls", "https/1", "https/2", "grpc"} {
		s := proxied(t, scheme, proxyproto.USE)
		relay := relayTo(t, s.addr, proxyV2)
		for _, name := range []string{"wire.", "unpack."} {
			for addr, want := range map[string]string{s.addr: "NOERROR 127.0.0.1", relay: "NOERROR 198.51.100.7"} {
				c := clients.Connect(t, scheme, addr)
				if r, err := c.Ask(query(name)); err != nil || describe(r) != want {
					t.Errorf("%s, %s: got %s, %v, want %s", scheme, name, describe(r), err, want)
				}
				c.Close()
			}
		}
	}
}

// relayTo is a proxy: it connects its clients to addr, and says head first.
func relayTo(t *testing.T, addr, head string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := startWith(head)(context.Background(), "tcp", addr)
			if err != nil {
				in.Close()
				continue
			}
			go func() { io.Copy(out, in); out.Close() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
	return l.Addr().String()
}

// TestProxyHeaderIsSlow has one that does not come: nobody waits for it but its own connection, and not for long.
func TestProxyHeaderIsSlow(t *testing.T) {
	for _, scheme := range []string{"dns", "tls", "https", "grpc"} {
		cfg := blockFor(t, scheme, who{})
		cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		handshake := 2 * time.Second // of the good one, too
		cfg.Limits.Handshake = &handshake
		cfg.ReadTimeout = handshake
		s := serving(t, cfg)
		slow := dial(t, s.addr)
		io.WriteString(slow, proxyV1[:10])
		if r, err := clients.Connect(t, scheme, relayTo(t, s.addr, proxyV1)).Ask(query("www.")); err != nil || describe(r) != "NOERROR 198.51.100.7" {
			t.Errorf("%s: got %v, %v", scheme, r, err)
		}
		closedAfter(t, slow, time.Now(), 0)
	}
}

// TestProxyCountsClients has connections count for the clients that a proxy tells.
func TestProxyCountsClients(t *testing.T) {
	cfg := blockFor(t, "dns", who{})
	cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
	two := 2
	cfg.Limits.ClientConnections = &two
	s := serving(t, cfg)
	before := limitedTo(s, "client_connections")
	for i := range 10 {
		c := dial(t, s.addr)
		fmt.Fprintf(c, "PROXY TCP4 198.51.100.%d 192.0.2.2 12345 53\r\n", i)
		c.Write(AddPrefix(packed(t, query("www."))))
		if _, err := clients.ReadFrame(c); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if n := limitedTo(s, "client_connections") - before; n != 0 {
		t.Errorf("counted %d", n)
	}
}

func TestProxyUDP(t *testing.T) {
	cfg := blockFor(t, "dns", who{})
	cfg.ProxyProtoConnPolicy = func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if addrOf(o.Upstream) == netip.MustParseAddr("127.0.0.2") {
			return proxyproto.IGNORE, nil
		}
		return proxyproto.USE, nil
	}
	cfg.ProxyProtoUDPSessionTrackingTTL = time.Minute
	proxyRefused.Reset()
	s := serving(t, cfg)
	addr := s.udp
	for _, tc := range []struct{ from, head, want string }{
		{"127.0.0.1", proxyUDP, "NOERROR 198.51.100.7"},
		{"127.0.0.1", "", "NOERROR 127.0.0.1"},
		{"127.0.0.1", proxyLocal, "NOERROR 127.0.0.1"},
		{"127.0.0.2", proxyUDP, "NOERROR 127.0.0.2"},
		{"127.0.0.1", proxyV2, "nothing"}, // of TCP
		{"127.0.0.1", proxyMagic, "nothing"},
	} {
		for _, name := range []string{"wire.", "unpack.", "block."} {
			c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(tc.from)}}).Dial("udp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c.Write(append([]byte(tc.head), packed(t, query(name))...))
			c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			buf := make([]byte, 512)
			n, err := c.Read(buf)
			var m *dns.Msg
			if err == nil {
				m = new(dns.Msg)
				m.Unpack(buf[:n])
			}
			if got := describe(m); got != tc.want {
				t.Errorf("%x from %s, %s: got %s", tc.head, tc.from, name, got)
			}
			c.Close()
		}
	}
	if got := refusedHeaders(s); got != " 3 0 6" {
		t.Errorf("counted%s", got)
	}
	// A header alone begins a session.
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, proxyUDP)
	c.Write(packed(t, query("unpack.")))
	c.SetReadDeadline(time.Now().Add(clients.AskTime))
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	m := new(dns.Msg)
	if err != nil || m.Unpack(buf[:n]) != nil || describe(m) != "NOERROR 198.51.100.7" {
		t.Errorf("got %v, %v", m, err)
	}
}

// FuzzProxyConn begins connections with anything.
func FuzzProxyConn(f *testing.F) {
	for _, head := range []string{proxyV1, proxyV1No, proxyV2, proxyV2TLV, proxyLocal, proxyUDP} {
		f.Add([]byte(head+"rest"), uint8(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, policy uint8) {
		ours, theirs := net.Pipe()
		go func() {
			theirs.SetWriteDeadline(time.Now().Add(time.Second))
			theirs.Write(b)
			theirs.Close()
		}()
		c := &proxyConn{Conn: ours, refused: refusals("dns://:53"), policy: proxyproto.Policy(policy % 5), r: bufio.NewReaderSize(ours, proxyBuffer)}
		rest, err := io.ReadAll(c)
		if err == nil && !bytes.HasSuffix(b, rest) {
			t.Fatalf("%s of %s", hex.EncodeToString(rest), hex.EncodeToString(b))
		}
		if trusted := c.policy == proxyproto.USE || c.policy == proxyproto.REQUIRE; c.remote != nil && (!trusted || err != nil) {
			t.Fatalf("%x: the client is %v", b, c.remote)
		}
		c.RemoteAddr()
		ours.Close()
	})
}
