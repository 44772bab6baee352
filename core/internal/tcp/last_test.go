package tcp

import (
	"context"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// While a query of a connection is at work the server that stops answers what comes behind it: at once, or, if the
// query takes long, when it is over.
func TestQueriesBehindTheLast(t *testing.T) {
	for how, config := range encryptions(t) {
		for _, wait := range []time.Duration{0, 1100 * time.Millisecond} {
			t.Run(how+" "+wait.String(), func(t *testing.T) {
				t.Parallel()
				h := &coretest.Lane{Held: make(chan struct{})}
				s := serve(t, h, config, nil)
				c := connect(t, s, config)
				ask := func(name, want string) (done chan struct{}) {
					done = make(chan struct{})
					go func() {
						defer close(done)
						if r, err := c.Ask(coretest.Query(name)); err != nil || coretest.Describe(r) != want {
							t.Errorf("%s: got %s, %v", name, coretest.Describe(r), err)
						}
					}()
					return done
				}
				held := ask("hold.", "NOERROR 192.0.2.2")
				eventually.Holds(t, "it is parked", func() bool { return h.Holding.Load() == 1 })
				ended := coretest.Stopping(t, s.end)
				time.Sleep(wait)
				behind := ask("www.", "NOERROR 192.0.2.1")
				time.Sleep(4 * service.DrainTime) // it has come before the other one ends
				close(h.Held)
				<-held
				<-behind
				ended()
			})
		}
	}
}

// gates is a plugin that has each query for a name wait until the gate of that name is opened, if there is one.
type gates map[string]*gate

type gate struct {
	waits  chan struct{}
	opened chan struct{}
}

func newGates(names ...string) gates {
	all := gates{}
	for _, name := range names {
		all[name] = &gate{make(chan struct{}, 1), make(chan struct{})}
	}
	return all
}

func (g gates) handler() coretest.Handler {
	return func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if g := g[r.Question[0].Name]; g != nil {
			g.waits <- struct{}{}
			<-g.opened
		}
		return coretest.Echo(ctx, w, r)
	}
}

// Who asks again while he waits for an answer is read on, for longer than who gets all his answers at once.
func TestReadOnWhileAnswersAreAwaited(t *testing.T) {
	for how, config := range encryptions(t) {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for !readOn(t, config) {
			}
		})
	}
}

// readOn reports false if the machine stood still for too long to tell.
func readOn(t *testing.T, config *tls.Config) bool {
	g := newGates("slow.")
	s := serve(t, g.handler(), config, nil)
	c := connect(t, s, config)
	slow := make(chan error, 1)
	go func() {
		_, err := c.Ask(coretest.Query("slow."))
		slow <- err
	}()
	<-g["slow."].waits
	begin := time.Now()
	ended := coretest.Stopping(t, s.end)
	time.Sleep(1100*time.Millisecond - time.Since(begin))
	answered := make(chan error, 1)
	go func() {
		_, err := c.Ask(coretest.Query("www."))
		answered <- err
	}()
	time.Sleep(2 * service.DrainTime)
	inTime := time.Since(begin) < 1400*time.Millisecond
	select {
	case err := <-answered:
		answered <- err
	default:
		if inTime {
			t.Error("it is not read on")
		}
	}
	close(g["slow."].opened)
	for _, got := range []chan error{slow, answered} {
		if err := <-got; err != nil && inTime {
			t.Error(err)
		}
	}
	ended()
	return inTime
}

// A client that never pauses is left while few of its last queries are in flight: until they are answered more would
// come, which nobody reads.
func TestStopLosesLeast(t *testing.T) {
	g := newGates("first.", "second.", "third.")
	s := serve(t, g.handler(), nil, nil)
	c := coretest.Dial(t, s.addr)
	ask := func(name string) {
		for range 5 {
			c.Write(coretest.Frame(t, "www."))
		}
		c.Write(coretest.Frame(t, name))
	}
	ask("first.")
	<-g["first."].waits
	ended := coretest.Stopping(t, s.end)
	time.Sleep(2 * time.Second) // longer than it is read on
	ask("second.")
	close(g["first."].opened)
	<-g["second."].waits
	time.Sleep(service.DrainTime) // the look is over
	ask("third.")
	time.Sleep(service.DrainTime) // all of that has come
	close(g["second."].opened)
	<-g["third."].waits
	answers := 0
	for ; ; answers++ {
		if _, err := clients.ReadFrame(c); err != nil {
			if err != io.EOF {
				t.Errorf("it is not left: %v", err)
			}
			break
		}
	}
	if answers != 17 {
		t.Errorf("%d answers", answers)
	}
	// What was lost may be answered: the client is still read, or the system would reset its connection.
	left := time.Now()
	close(g["third."].opened)
	for range 3 {
		time.Sleep(30 * time.Millisecond)
		if _, err := c.Write(coretest.Frame(t, "www.")); err != nil && time.Since(left) < 150*time.Millisecond {
			t.Errorf("it is not read on: %v", err)
		}
	}
	c.Close()
	ended()
}
