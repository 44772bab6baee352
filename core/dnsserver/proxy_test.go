package dnsserver

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
	"github.com/quic-go/quic-go"
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

// TestProxyDatagrams asks by way of a proxy over UDP, and over QUIC.
func TestProxyDatagrams(t *testing.T) {
	for _, scheme := range []string{"dns", "quic"} {
		cfg := blockFor(t, scheme, coretest.Who{})
		cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
		s := serving(t, cfg)
		var direct, relayed clients.Client = clients.UDPClient{Addr: s.udp}, headed{clients.UDPClient{Addr: s.udp}}
		if scheme == "quic" {
			p := coretest.ListenUDP(t)
			tr := &quic.Transport{Conn: proxySender{p}}
			defer tr.Close()
			addr, _ := net.ResolveUDPAddr("udp", s.udp)
			conf := clients.Trusting.Clone()
			conf.NextProtos = []string{"doq"}
			conn, err := tr.Dial(context.Background(), addr, conf, nil)
			if err != nil {
				t.Fatal(err)
			}
			direct, relayed = clients.DialQUIC(t, s.addr), &clients.QUICClient{Conn: conn}
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
