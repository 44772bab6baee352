package dnsserver

import (
	"net"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// Who begins to listen where somebody else listens is told so.
func TestSharedAddressIsTold(t *testing.T) {
	out := logtest.Capture(t)
	serving := func(addr string) *Server {
		t.Helper()
		s, err := NewServer("dns://"+addr, []*Config{block1(".", echo)})
		if err != nil {
			t.Fatal(err)
		}
		d := &dnsContext{instance: new(caddy.Instance)}
		d.newGeneration([]server{s})
		return s
	}
	open := func(s *Server) (addr string) {
		t.Helper()
		l, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		p, err := s.ListenPacket()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return l.Addr().String()
	}
	told := func() int {
		n := strings.Count(out.String(), "[WARNING] Another process listens on ")
		out.Take()
		return n
	}
	first := serving("127.0.0.1:0")
	addr := open(first)
	if n := told(); n != 0 {
		t.Errorf("%d warnings for an address that was free", n)
	}
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()

	other := serving(addr)
	open(other)
	if !strings.Contains(out.String(), "Another process listens on "+addr+" tcp, too") {
		t.Errorf("logged %q", out.String())
	}
	if n := told(); n != 1 { // only TCP was taken
		t.Errorf("%d warnings", n)
	}
	open(other) // as multisocket does
	if n := told(); n != 0 {
		t.Errorf("%d warnings for a second socket of the same server", n)
	}
	_, port, _ := net.SplitHostPort(addr)
	wide := serving(":" + port)
	wide.generation = other.generation
	open(wide)
	if n := told(); n != 0 {
		t.Errorf("%d warnings for all addresses, of which the same process has one", n)
	}
	one := serving("127.0.0.2:" + port)
	one.generation = new(generation)
	one.generation.fresh("tcp", ":"+port)
	one.generation.fresh("udp", "0.0.0.0:"+port)
	open(one)
	if n := told(); n != 0 {
		t.Errorf("%d warnings for an address, of which the same process has all", n)
	}
	reloaded := serving(addr)
	reloaded.generation.previous = other.generation
	open(reloaded)
	if n := told(); n != 0 {
		t.Errorf("%d warnings in a reload", n)
	}
}

// Who finds that a server takes connections may ask it over UDP, too: that socket is open by then.
func TestUDPOpensFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s, err := NewServer("dns://"+addr, []*Config{block1(".", echo)})
	if err != nil {
		t.Fatal(err)
	}
	taken := func() bool {
		p, err := net.ListenPacket("udp", addr)
		if err == nil {
			p.Close()
		}
		return err != nil
	}
	if taken() {
		t.Fatal("the port is not free")
	}
	if l, err = s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !taken() {
		t.Error("there is no UDP socket when the TCP socket is open")
	}
	if err := s.Stop(); err != nil || taken() {
		t.Errorf("a socket that nobody has fetched stays open: %v", err)
	}
}
