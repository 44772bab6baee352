package dnsserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// Serve and ServePacket return when the queries that are at work have been answered: programs end when they have,
// also where only Stop is called, as it is by who has begun another process in its place (SIGUSR2).
func TestServeReturnsAfterItsQueries(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	waits := handler{"waits", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		close(begun)
		<-release
		return 0, w.WriteMsg(new(dns.Msg).SetReply(r))
	}}
	s, err := NewServer("dns://127.0.0.1:0", []*Config{block1(".", waits)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.ListenPacket()
	if err != nil {
		t.Fatal(err)
	}
	returned := make(chan struct{})
	go func() {
		s.ServePacket(p)
		close(returned)
	}()
	replied := make(chan error, 1)
	go func() {
		c := &dns.Client{Timeout: time.Minute}
		_, _, err := c.Exchange(new(dns.Msg).SetQuestion("a.", dns.TypeA), p.LocalAddr().String())
		replied <- err
	}()
	<-begun
	ended := stopping(t, s)
	select {
	case <-returned:
		t.Error("ServePacket returned before the reply")
	case <-time.After(100 * time.Millisecond): // longer than the loops take to end
	}
	close(release)
	if err := <-replied; err != nil {
		t.Error(err)
	}
	ended()
	<-returned
}

// Caddy stops one server after the other (SIGUSR2): those behind one whose query takes long do not go on meanwhile.
func TestAllServersStopAtOnce(t *testing.T) {
	probed(t)
	last := lastGeneration()
	i := started(t, fmt.Sprintf(".:0 {\nprobe one\n}\n.:%d {\nprobe two\n}", loopback.Port()))
	_, first := pending(t, "udp", i.Servers()[0].LocalAddr(), "slow.")
	probing.gate.holds(t, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- i.Stop() }()
	eventually.Holds(t, "all stop", func() bool {
		for _, s := range last().servers {
			if !s.isStopped() {
				return false
			}
		}
		return len(last().servers) == 2
	})
	if len(stopped) > 0 {
		t.Error("it did not wait for the query")
	}
	probing.gate.open()
	if got := first(); got != "one" {
		t.Errorf("got %s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
