package dnsserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/coredns/caddy"
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

// At the end of the process queries over UDP are answered as long as any connection keeps it, but not longer than
// datagramTime: those that come later have no time left.
func TestDatagramsAreTakenToTheEnd(t *testing.T) {
	defer func(was time.Duration) { datagramTime = was }(datagramTime)
	const soon = 50 * time.Millisecond // one that comes at the end may be lost
	for _, test := range []struct {
		name string
		most time.Duration
	}{{"connections", time.Minute}, {"datagramTime", time.Millisecond}} {
		t.Run(test.name, func(t *testing.T) {
			datagramTime = test.most
			probed(t)
			i := started(t, fmt.Sprintf(".:0 {\nprobe one\n}\n.:%d {\nprobe two\n}", loopback.Port()))
			servers := i.Servers()
			_, slow := pending(t, "tcp", servers[0].Addr(), "slow.")
			probing.gate.holds(t, 1)
			over := make(chan []error, 1)
			go func() { over <- i.ShutdownCallbacks() }()
			eventually.Holds(t, "connections are refused", func() bool {
				c, err := net.Dial("tcp", servers[0].Addr().String())
				if err == nil {
					c.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			})
			answers := func(s caddy.ServerListener, within time.Duration) bool {
				c := &dns.Conn{Conn: dialUDP(t, s.LocalAddr().String())}
				defer c.Close()
				c.SetDeadline(time.Now().Add(within))
				if err := c.WriteMsg(new(dns.Msg).SetQuestion("fast.", dns.TypeTXT)); err != nil {
					return false
				}
				_, err := c.ReadMsg()
				return err == nil
			}
			if test.most == time.Minute {
				for n, s := range servers {
					if !answers(s, 5*time.Second) {
						t.Errorf("server %d: UDP is refused while a query waits on a connection of the first", n)
					}
				}
			} else {
				eventually.Holds(t, "UDP is refused, too", func() bool { return !answers(servers[0], soon) && !answers(servers[1], soon) })
			}
			if len(over) > 0 {
				t.Error("it did not wait for the query")
			}
			probing.gate.open()
			if got := slow(); got != "one" {
				t.Errorf("got %s", got)
			}
			if errs := <-over; len(errs) > 0 {
				t.Error(errs)
			}
			if answers(servers[0], soon) || answers(servers[1], soon) {
				t.Error("UDP is answered after the end")
			}
		})
	}
}
