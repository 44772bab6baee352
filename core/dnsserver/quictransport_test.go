package dnsserver

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/quic-go/quic-go"
)

func TestQUICConnections(t *testing.T) {
	for scheme, codes := range map[string]quicCodes{"quic": {0, 4}, "https3": {0x100, 0x107}} {
		cfg := blockFor(t, scheme, second)
		most := 3
		cfg.MaxQUICConnections, cfg.MaxHTTPS3Connections = &most, &most
		s := serving(t, cfg)
		raw := func() *quic.Conn {
			conf := trusting.Clone()
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
			_, err := connect(t, scheme, s.addr).ask(query(name))
			busy <- err
		}
		go ask("slow.")
		go ask("slow.")
		time.Sleep(100 * time.Millisecond)
		idle := raw()
		for range 5 {
			idle = raw() // displaces the one before
		}
		go ask("slow.") // and this one the last
		if got := closeCode(t, idle); got != int(codes.none) {
			t.Errorf("%s: an idle connection was closed with %d", scheme, got)
		}
		time.Sleep(50 * time.Millisecond)
		if got := closeCode(t, raw()); got != int(codes.tooMany) {
			t.Errorf("%s: refused with %d, want %d", scheme, got, codes.tooMany)
		}
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
		s := serving(t, blockFor(t, scheme, echo))
		c := connect(t, scheme, s.addr)
		if _, err := c.ask(query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := c.ask(query("slow."))
			done <- err
		}()
		time.Sleep(50 * time.Millisecond)
		begin := time.Now()
		if err := s.base().Stop(); err != nil || time.Since(begin) > 2*time.Second {
			t.Errorf("%s: %v after %v", scheme, err, time.Since(begin))
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		s.wait()
		if q, ok := c.(*quicClient); ok {
			if got := closeCode(t, q.conn); got != 0 {
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
	c := dialQUIC(t, p.LocalAddr().String())
	if _, err := c.ask(query("www.")); err != nil {
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
	case <-c.conn.Context().Done():
	case <-time.After(time.Second):
		t.Error("the client does not know")
	}
	if _, err := dialQUIC(t, handed.LocalAddr().String()).ask(query("www.")); err != nil {
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
	conf := trusting.Clone()
	conf.NextProtos = []string{"doq"}
	conn, err := tr.Dial(t.Context(), addr, conf, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &quicClient{conn}
	defer c.close()
	for _, name := range []string{"wire.", "unpack."} {
		if r, err := c.ask(query(name)); err != nil || describe(r) != "NOERROR 198.51.100.7" {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	if r, err := dialQUIC(t, s.addr).ask(query("wire.")); err != nil || describe(r) != "NOERROR 127.0.0.1" {
		t.Errorf("without a proxy: got %v, %v", r, err)
	}
}
