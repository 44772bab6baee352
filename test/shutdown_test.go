package test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// newPlainListener is an address that is taken in such a way that nobody may share it.
func newPlainListener(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// What was received before the end is answered, as after SIGTERM.
func TestShutdownAnswersWhatWasReceived(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		i, udp, tcp, err := CoreDNSServerAndPorts(".:0 {\nbind 127.0.0.1\nerratic {\ndelay 1 400ms\n}\n}")
		if err != nil {
			t.Fatal(err)
		}
		addr := map[string]string{"udp": udp, "tcp": tcp}[network]
		const queries = 20
		var wg sync.WaitGroup
		for n := range queries {
			wg.Go(func() {
				if m := ask(t, network, addr, question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA)); m == nil || len(m.Answer) != 1 {
					t.Errorf("%s query %d: got %v", network, n, m)
				}
			})
		}
		time.Sleep(150 * time.Millisecond) // all are at work now
		begin := time.Now()
		if errs := i.ShutdownCallbacks(); len(errs) > 0 {
			t.Error(errs)
		}
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("%s: the end took %s", network, took)
		}
		wg.Wait()
		if m := ask(t, "tcp", tcp, question("example.org.", dns.TypeA)); m != nil {
			t.Errorf("answers on: %v", m)
		}
	}
}

// A reload while queries are at work answers them, too: those that wait in the server, and those whose replies come from an upstream
// when the loops that asked it have ended.
func TestReloadAnswersWhatWasReceived(t *testing.T) {
	for name, chain := range map[string]string{
		"here":     "erratic {\ndelay 1 300ms\n}",
		"upstream": "forward . " + late(t, 300*time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			corefile := ".:0 {\nbind 127.0.0.1\n" + chain + "\n}"
			i, udp, _, err := CoreDNSServerAndPorts(corefile)
			if err != nil {
				t.Fatal(err)
			}
			r := &running{i}
			defer r.end()
			var wg sync.WaitGroup
			for n := range 20 {
				wg.Go(func() {
					if m := ask(t, "udp", udp, question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess {
						t.Errorf("query %d: got %v", n, m)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			if r.instance, err = r.instance.Restart(NewInput(corefile)); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
		})
	}
}

// Errors that were counted are logged when the server ends or reloads.
func TestErrorsAreLoggedAtTheEnd(t *testing.T) {
	out := captureLog(t)
	const corefile = ".:0 {\nbind 127.0.0.1\nerrors {\nconsolidate 1h \"no next plugin\" warning\n}\nchaos\n}"
	i, udp, _, err := CoreDNSServerAndPorts(corefile)
	if err != nil {
		t.Fatal(err)
	}
	ends := []func(*caddy.Instance) *caddy.Instance{
		func(i *caddy.Instance) *caddy.Instance {
			next, err := i.Restart(NewInput(corefile))
			if err != nil {
				t.Fatal(err)
			}
			return next
		},
		func(i *caddy.Instance) *caddy.Instance { i.ShutdownCallbacks(); return i },
	}
	for n, end := range ends {
		for range 3 {
			if m := ask(t, "udp", udp, question("example.org.", dns.TypeA)); m == nil || m.Rcode != dns.RcodeServerFailure {
				t.Errorf("got %v", m)
			}
		}
		i = end(i)
		const line = "[WARNING] plugin/errors: 3 errors like 'no next plugin' occurred in last 1h0m0s\n"
		if got := strings.Count(out.String(), line); got != n+1 {
			t.Errorf("end %d: logged %q", n, out)
		}
	}
	CoreDNSServerStop(i)
}
