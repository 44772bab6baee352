package dnsserver

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/test/clients"
)

func TestQUICConnections(t *testing.T) {
	for scheme, codes := range map[string]quicCodes{"quic": {0, 4}, "https3": {0x100, 0x107}} {
		g := newGate(t)
		cfg := blockFor(t, scheme, g)
		most := 3
		cfg.MaxQUICConnections, cfg.MaxHTTPS3Connections = &most, &most
		s := serving(t, cfg)
		raw := func() *quic.Conn {
			conf := clients.Trusting.Clone()
			conf.NextProtos = []string{map[string]string{"quic": "doq", "https3": "h3"}[scheme]}
			conn, err := quic.DialAddr(t.Context(), s.addr, conf, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.CloseWithError(0, "") })
			time.Sleep(20 * time.Millisecond) // until the server knows that the handshake is complete
			return conn
		}
		busy := make(chan error, 3)
		ask := func(name string) {
			_, err := clients.Connect(t, scheme, s.addr).Ask(query(name))
			busy <- err
		}
		go ask("slow.")
		go ask("slow.")
		g.holds(t, 2)
		idle := raw()
		for range 3 {
			before := idle
			idle = raw() // displaces the one before when that has been idle for long enough
			if got := closeCode(t, before); got != int(codes.none) {
				t.Errorf("%s: an idle connection was closed with %d", scheme, got)
			}
		}
		go ask("slow.") // and this one the last
		if got := closeCode(t, idle); got != int(codes.none) {
			t.Errorf("%s: the last idle connection was closed with %d", scheme, got)
		}
		g.holds(t, 3)
		if got := closeCode(t, raw()); got != int(codes.tooMany) {
			t.Errorf("%s: refused with %d, want %d", scheme, got, codes.tooMany)
		}
		g.open()
		for range 3 {
			if err := <-busy; err != nil {
				t.Errorf("%s: %v", scheme, err)
			}
		}
	}
}

// TestQUICStops has servers stop while queries are at work.
func TestQUICStops(t *testing.T) {
	for _, scheme := range []string{"quic", "https3"} {
		g := newGate(t)
		s := serving(t, blockFor(t, scheme, g))
		c := clients.Connect(t, scheme, s.addr)
		if _, err := c.Ask(query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := c.Ask(query("slow."))
			done <- err
		}()
		g.holds(t, 1)
		ended := stopping(t, s.base())
		g.open()
		ended()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		s.wait()
		if q, ok := c.(*clients.QUICClient); ok {
			if got := closeCode(t, q.Conn); got != 0 {
				t.Errorf("closed with %d", got)
			}
		}
	}
}

// TestQUICTakesOver has a server take over the socket of another one, as in a reload: clients of the first learn at once that
// their connections are over, and connect again.
func TestQUICTakesOver(t *testing.T) {
	first, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{blockFor(t, "quic", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	p, err := first.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	handed := duplicate(p.(*net.UDPConn))
	var wg sync.WaitGroup
	wg.Go(func() { first.ServePacket(p) })
	c := clients.DialQUIC(t, p.LocalAddr().String())
	if _, err := c.Ask(query("www.")); err != nil {
		t.Fatal(err)
	}
	second, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{blockFor(t, "quic", new(laneHandler))})
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { second.ServePacket(handed) })
	time.Sleep(20 * time.Millisecond)
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Conn.Context().Done():
	case <-time.After(clients.AskTime):
		t.Error("the client does not know")
	}
	if _, err := clients.DialQUIC(t, handed.LocalAddr().String()).Ask(query("www.")); err != nil {
		t.Error(err)
	}
	second.Stop()
	wg.Wait()
}

// proxySender puts a PROXY header before each datagram that it sends.
type proxySender struct{ net.PacketConn }

func (p proxySender) WriteTo(b []byte, addr net.Addr) (int, error) {
	n, err := p.PacketConn.WriteTo(append([]byte(proxyUDP), b...), addr)
	return n - len(proxyUDP), err
}

// TestQUICProxy asks by way of a proxy.
func TestQUICProxy(t *testing.T) {
	cfg := blockFor(t, "quic", who{})
	cfg.ProxyProtoConnPolicy = policyOf(proxyproto.USE)
	s := serving(t, cfg)
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tr := &quic.Transport{Conn: proxySender{p}}
	defer tr.Close()
	addr, _ := net.ResolveUDPAddr("udp", s.addr)
	conf := clients.Trusting.Clone()
	conf.NextProtos = []string{"doq"}
	conn, err := tr.Dial(t.Context(), addr, conf, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &clients.QUICClient{Conn: conn}
	defer c.Close()
	for _, name := range []string{"wire.", "unpack."} {
		if r, err := c.Ask(query(name)); err != nil || describe(r) != "NOERROR 198.51.100.7" {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	if r, err := clients.DialQUIC(t, s.addr).Ask(query("wire.")); err != nil || describe(r) != "NOERROR 127.0.0.1" {
		t.Errorf("without a proxy: got %v, %v", r, err)
	}
}
