package dnsserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// policyOf is a policy that is the same for all.
func policyOf(p proxyproto.Policy) proxyproto.ConnPolicyFunc {
	return func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return p, nil }
}

const (
	proxyV2  = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x11\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
	proxyUDP = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x12\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
)

// relayTo is a proxy: it connects its clients to addr, and says head first.
func relayTo(t *testing.T, addr, head string) string {
	t.Helper()
	l := coretest.ListenTCP(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				in.Close()
				continue
			}
			io.WriteString(out, head)
			go func() { io.Copy(out, in); out.Close() }()
			go func() { io.Copy(in, out); in.Close() }()
		}
	}()
	return l.Addr().String()
}

// TestProxyHeadersOfEachScheme has the header before whatever else the scheme begins with.
func TestProxyHeadersOfEachScheme(t *testing.T) {
	for _, scheme := range []string{"dns", "tls", "https/1", "https/2", "grpc"} {
		cfg := blockFor(t, scheme, coretest.Who{})
		cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		s := serving(t, cfg)
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

// TestProxyHeaderIsSlow has one that does not come: nobody waits for it but its own connection, and not for long.
func TestProxyHeaderIsSlow(t *testing.T) {
	for _, scheme := range []string{"dns", "tls", "https", "grpc"} {
		cfg := blockFor(t, scheme, coretest.Who{})
		cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		handshake := 2 * time.Second // of the good one, too
		cfg.Limits.Handshake = &handshake
		cfg.ReadTimeout = handshake
		s := serving(t, cfg)
		slow := dial(t, s.addr)
		io.WriteString(slow, proxyV2[:4])
		r, err := clients.Connect(t, scheme, relayTo(t, s.addr, proxyV2)).Ask(query("www."))
		if err != nil || describe(r) != "NOERROR 198.51.100.7" {
			t.Errorf("%s: got %v, %v", scheme, r, err)
		}
		closedAfter(t, slow, time.Now(), 0)
	}
}

// proxySender puts a PROXY header before each datagram that it sends.
type proxySender struct{ net.PacketConn }

func (p proxySender) WriteTo(b []byte, addr net.Addr) (int, error) {
	n, err := p.PacketConn.WriteTo(append([]byte(proxyUDP), b...), addr)
	return n - len(proxyUDP), err
}

// headed is a client over UDP that puts a header before what it asks.
type headed struct{ clients.UDPClient }

func (h headed) Ask(m *dns.Msg) (*dns.Msg, error) {
	b, err := m.Pack()
	if err != nil {
		return nil, err
	}
	if b, err = h.Raw(append([]byte(proxyUDP), b...)); err != nil {
		return nil, err
	}
	r := new(dns.Msg)
	return r, r.Unpack(b)
}

// TestProxyDatagrams asks by way of a proxy over UDP, QUIC and HTTP/3.
func TestProxyDatagrams(t *testing.T) {
	for _, scheme := range []string{"dns", "quic", "https3"} {
		cfg := blockFor(t, scheme, coretest.Who{})
		cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		s := serving(t, cfg)
		var direct, relayed clients.Client = clients.UDPClient{Addr: s.udp}, headed{clients.UDPClient{Addr: s.udp}}
		if scheme != "dns" {
			tr := &quic.Transport{Conn: proxySender{coretest.ListenUDP(t)}}
			defer tr.Close()
			direct = clients.Connect(t, scheme, s.addr)
			relayed, _ = quicFrom(t, scheme, s.udp, tr)
		}
		for _, name := range []string{"wire.", "unpack."} {
			for want, c := range map[string]clients.Client{"NOERROR 198.51.100.7": relayed, "NOERROR 127.0.0.1": direct} {
				if r, err := c.Ask(query(name)); err != nil || describe(r) != want {
					t.Errorf("%s, %s: got %v, %v, want %s", scheme, name, r, err, want)
				}
			}
		}
		relayed.Close()
	}
}

// quicFrom is a client for a server of quic:// or https3:// that sends by tr, and its connection.
func quicFrom(t *testing.T, scheme, addr string, tr *quic.Transport) (clients.Client, *quic.Conn) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conf := clients.Trusting.Clone()
	conf.NextProtos = map[string][]string{"quic": {"doq"}, "https3": {"h3"}}[scheme]
	conn, err := tr.Dial(t.Context(), to, conf, &quic.Config{EnableDatagrams: true})
	if err != nil {
		t.Fatal(err)
	}
	if scheme == "quic" {
		return &clients.QUICClient{Conn: conn}, conn
	}
	c := clients.DialHTTP3(t, addr, http.MethodPost)
	c.Client.Transport.(*http3.Transport).Dial = func(context.Context, string, *tls.Config, *quic.Config) (*quic.Conn, error) { return conn, nil }
	return c, conn
}

// TestClientMoves has a client of a QUIC connection that comes from another address after a while (RFC 9000 §9): the queries
// that it sends from there are of that address.
func TestClientMoves(t *testing.T) {
	for _, scheme := range []string{"quic", "https3"} {
		s := serving(t, blockFor(t, scheme, coretest.Who{}))
		c, conn := quicFrom(t, scheme, s.udp, &quic.Transport{Conn: coretest.ListenUDP(t)})
		asked := func(want string) {
			t.Helper()
			for _, name := range []string{"wire.", "unpack."} {
				if r, err := c.Ask(query(name)); err != nil || describe(r) != want {
					t.Errorf("%s, %s: got %v, %v, want %s", scheme, name, r, err, want)
				}
			}
		}
		asked("NOERROR 127.0.0.1")
		other, err := net.ListenPacket("udp", "127.0.0.2:0")
		if err != nil {
			t.Skip(err)
		}
		defer other.Close()
		path, err := conn.AddPath(&quic.Transport{Conn: other})
		if err == nil {
			err = path.Probe(t.Context())
		}
		if err == nil {
			err = path.Switch()
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Ask(query("wire.")) // by which the server learns of it
		asked("NOERROR 127.0.0.2")
		c.Close()
	}
}

// TestReloadKeepsProxySessions reloads between a header and the query that it is for.
func TestReloadKeepsProxySessions(t *testing.T) {
	probed(t)
	probing.setup = func(c *caddy.Controller) {
		cfg := GetConfig(c)
		cfg.AddPlugin(func(plugin.Handler) plugin.Handler { return coretest.Who{} })
		cfg.ProxyProtoConnPolicy, cfg.ProxyProtoUDPSessionTrackingTTL = policyOf(proxyproto.USE), time.Hour
	}
	i := started(t, ".:0 {\nprobe one\n}")
	c := &dns.Conn{Conn: dialUDP(t, i.Servers()[0].LocalAddr().String())}
	ask := func() {
		t.Helper()
		c.WriteMsg(query("wire."))
		if r, err := c.ReadMsg(); err != nil || describe(r) != "NOERROR 198.51.100.7" {
			t.Errorf("got %v, %v", r, err)
		}
	}
	io.WriteString(c.Conn, proxyUDP)
	ask()
	if _, err := i.Restart(inputOf(".:0 {\nprobe two\n}")); err != nil {
		t.Fatal(err)
	}
	ask()
}

// TestReloadOfProxyHeaders turns PROXY headers on and off: connections go on as who they are, and new ones are as the
// configuration says.
func TestReloadOfProxyHeaders(t *testing.T) {
	for scheme, config := range map[string]*tls.Config{"dns": nil, "grpc": certificate(t), "https": certificate(t), "tls": certificate(t)} {
		probed(t)
		off := func(c *caddy.Controller) { GetConfig(c).TLSConfig = config }
		on := func(c *caddy.Controller) {
			off(c)
			GetConfig(c).ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		}
		probing.setup = off
		i := started(t, scheme+"://.:0 {\nprobe one\n}")
		addr := i.Servers()[0].Addr().String()
		kind := scheme
		if scheme == "https" {
			kind = "https/2"
		}
		direct := clients.Connect(t, kind, addr)
		expect := func(c clients.Client, text string) {
			t.Helper()
			if got := textIn(c.Ask(new(dns.Msg).SetQuestion("www.", dns.TypeTXT))); got != text {
				t.Errorf("%s: %s instead of %s", scheme, got, text)
			}
		}
		expect(direct, "one")
		reload := func(text string, setup func(*caddy.Controller)) {
			t.Helper()
			var err error
			probing.setup = setup
			if i, err = i.Restart(inputOf(scheme + "://.:0 {\nprobe " + text + "\n}")); err != nil {
				t.Fatal(err)
			}
			expect(direct, text)
		}
		reload("two", on)
		relayed := clients.Connect(t, kind, relayTo(t, addr, proxyV2))
		expect(relayed, "two")
		reload("three", off)
		expect(relayed, "three")
	}
}
