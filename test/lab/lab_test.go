package lab

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test"
)

// start starts a lab and a resolver on it, and returns the resolver's address.
func start(t *testing.T, tlds, zones int, more string) (*Lab, string) {
	t.Helper()
	l, err := Build(t.TempDir(), loopback.Port(), tlds, zones)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	if err := l.Start(); err != nil {
		t.Skipf("the addresses 127.9.0.0/16 cannot be listened on: %v", err)
	}
	i, udp, _, err := test.CoreDNSServerAndPorts(l.Resolver(loopback.Port(), more))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	return l, udp
}

// each calls f with each question, by some goroutines.
func each(l *Lab, f func(q Question)) {
	var all sync.WaitGroup
	work := make(chan Question)
	for range 16 {
		all.Go(func() {
			for q := range work {
				f(q)
			}
		})
	}
	for _, q := range l.Questions {
		work <- q
	}
	close(work)
	all.Wait()
}

// All that is in the zones is found, faults or not, and what is not is denied; and again, from what is kept.
func TestResolve(t *testing.T) {
	l, resolver := start(t, 3, 16, "")
	for _, round := range []string{"cold", "warm"} {
		each(l, func(q Question) {
			a, err := Ask(resolver, q.Name, q.Type)
			if err != nil || a.Rcode != q.Rcode || a.Addr != q.Addr {
				t.Errorf("%s: %s %d (fault %d): %v %v, want %d %q", round, q.Name, q.Type, q.Fault, a, err, q.Rcode, q.Addr)
			}
		})
	}
}

// The extended errors of what cannot be resolved (RFC 8914). Who asks again is told that it was found out before (R12).
func TestExtendedErrors(t *testing.T) {
	l, resolver := start(t, 1, int(Faults), "")
	for _, q := range l.Questions {
		want := ""
		switch {
		case q.Fault == AllLame:
			want = "[22]"
		case q.Fault == Looping && q.Rcode != 3:
			want = "[0]"
		default:
			continue
		}
		for _, want := range []string{want, strings.TrimSuffix(want, "]") + " 13]"} {
			if a, err := Ask(resolver, q.Name, q.Type); err != nil || fmt.Sprint(a.EDE) != want {
				t.Errorf("%s: %v %v, want %s", q.Name, a, err, want)
			}
		}
	}
}
