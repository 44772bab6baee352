package dnsserver

import (
	"context"
	"testing"
	"time"

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
