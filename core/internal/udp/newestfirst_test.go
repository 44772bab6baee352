package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// slowSocket takes one reply when it is told to.
type slowSocket struct {
	take chan error
	mu   sync.Mutex
	sent []string
}

func (s *slowSocket) write(b, control []byte, to netip.AddrPort) error {
	err := <-s.take
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.sent = append(s.sent, fmt.Sprintf("%s %s %v", b, control, to.Port()))
	}
	return err
}

func (s *slowSocket) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.sent)
}

// shedding is a Transport that sheds, without sockets.
func shedding(t *testing.T) *Transport {
	s := &service.Service{Label: coretest.Label(t)}
	return &Transport{service: s, Options: Options{Shed: true, Saturated: new(atomic.Int32)}}
}

func shedCount(u *Transport, reason string) int {
	return int(testutil.ToFloat64(shedDropped.WithLabelValues(u.service.Label, reason)))
}

func TestNewestFirst(t *testing.T) {
	u := shedding(t)
	socket := &slowSocket{take: make(chan error)}
	r := newNewestFirst(u.service.Label, u.Saturated, 3, socket.write)
	push := func(i int) {
		r.push(fmt.Appendf(nil, "b%d", i), fmt.Appendf(nil, "c%d", i), netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i)))
	}
	push(0)
	eventuallyEmpty(t, r, 0) // it is being sent
	for i := 1; i <= 2; i++ {
		push(i)
	}
	if u.Saturated.Load() != 0 {
		t.Error("full too early")
	}
	push(3)
	if u.Saturated.Load() != 1 {
		t.Error("not full")
	}
	push(4) // the oldest gives way
	push(5)
	if shedCount(u, "response") != 2 || u.Saturated.Load() != 1 {
		t.Errorf("%d responses counted, %d stacks full", shedCount(u, "response"), u.Saturated.Load())
	}
	socket.take <- nil
	eventuallyEmpty(t, r, 2)
	if u.Saturated.Load() != 0 {
		t.Error("still full")
	}
	socket.take <- errors.New("no route")
	socket.take <- nil
	r.end()
	r.end()
	push(6)
	socket.take <- nil
	<-r.done
	if got := socket.all(); got != "[b0 c0 0 b4 c4 4 b3 c3 3]" {
		t.Errorf("sent %s", got)
	}
	if n := shedCount(u, "response"); n != 4 { // two were too many, one had an error, one came too late
		t.Errorf("%d responses counted", n)
	}
}

// eventuallyEmpty waits until so many replies are left.
func eventuallyEmpty(t *testing.T, r *newestFirst, want int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		n := r.n
		r.mu.Unlock()
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d replies wait", n)
		}
	}
}

func TestNewestFirstConcurrently(t *testing.T) {
	u := shedding(t)
	var sent sync.Map
	r := newNewestFirst(u.service.Label, u.Saturated, 16, func(b, _ []byte, _ netip.AddrPort) error {
		sent.Store(string(b), true)
		return nil
	})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				r.push(fmt.Appendf(nil, "%d-%d", g, i), nil, netip.AddrPort{})
			}
		})
	}
	wg.Wait()
	r.end()
	<-r.done
	n := 0
	sent.Range(func(any, any) bool { n++; return true })
	if n+shedCount(u, "response") != 2000 || u.Saturated.Load() != 0 {
		t.Errorf("%d sent, %d dropped, %d stacks full", n, shedCount(u, "response"), u.Saturated.Load())
	}
}

// TestShedServes has a listener with stacks answer as others do, in both lanes.
func TestShedServes(t *testing.T) {
	s := serving(t, new(coretest.Lane), Options{Shed: true})
	for name, want := range map[string]string{"www.": "NOERROR 192.0.2.1", "unpack.": "NOERROR 192.0.2.3", "block.": "NOERROR 192.0.2.2", "park.": "NOERROR 192.0.2.2"} {
		if got := coretest.Describe(ask(t, s.addr, name, nil)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// The counters of a listener are there before anything is counted.
func TestShedFromZero(t *testing.T) {
	label := coretest.Label(t)
	before := testutil.CollectAndCount(shedDropped)
	CountShedFromZero(label)
	if n := testutil.CollectAndCount(shedDropped) - before; n != 2 {
		t.Errorf("%d counters", n)
	}
	ShedQuery(label)
	if n := testutil.ToFloat64(shedDropped.WithLabelValues(label, "query")); n != 1 {
		t.Errorf("counted %v", n)
	}
}
