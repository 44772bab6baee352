package tcp

import (
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
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
