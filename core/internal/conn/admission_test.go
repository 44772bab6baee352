package conn

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func init() { idleTime = 100 * time.Millisecond }

// guest is a connection that says when it was busy last.
type guest struct {
	name  string
	since int64
	busy  bool
	party *party
}

// party notes who had to go.
type party struct {
	mu      sync.Mutex
	evicted []string
	cut     int  // how many of them at once
	owed    bool // something, to all
}

func (g *guest) IdleSince() (int64, bool) { return g.since, !g.busy }
func (g *guest) Owed() bool               { return g.party.owed }
func (g *guest) Evict(now bool) {
	g.party.mu.Lock()
	g.party.evicted = append(g.party.evicted, g.name)
	if now {
		g.party.cut++
	}
	g.party.mu.Unlock()
}

func tcpAddr(ip string) *net.TCPAddr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }

func (p *party) gone() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.evicted)
}

// Who has half of all places is spared for a shorter time.
func TestSpared(t *testing.T) {
	a, _ := admissionFor(t, 10, 0)
	for n, want := range map[int]time.Duration{1: idleTime, 4: idleTime, 5: idleTime / 20, 10: idleTime / 20} {
		if got := a.spared(&clientConns{all: make([]*Slot, n)}); got != want {
			t.Errorf("with %d of 10 connections: %v, want %v", n, got, want)
		}
	}
}

func admissionFor(t *testing.T, connections, client int) (*Admission, *party) {
	t.Helper()
	s := &service.Service{Label: coretest.Label(t)}
	s.Limits = service.Limits{Connections: connections, Client: client, Bits4: 32, Bits6: 56}
	a := NewAdmission(coretest.SeatOf(s))
	a.now = func() int64 { return int64(idleTime) + 10_000 } // all guests that are not busy have been idle for long enough
	return a, new(party)
}

func reached(a *Admission, reason string) int { return coretest.Limited(a.service(), reason) }

func TestAdmission(t *testing.T) {
	a, p := admissionFor(t, 3, 0)
	one, two, three := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("::ffff:192.0.2.3")
	enter := func(addr netip.Addr, name string, since int64, busy bool) *Slot {
		return a.Enter(addr, &guest{name, since, busy, p}, 0)
	}
	enter(one, "a", 10, false)
	enter(one, "b", 5, false)
	enter(two, "c", 1, false)
	if p.gone() != "[]" || a.n != 3 {
		t.Fatalf("%s had to go", p.gone())
	}
	// Of the client that has most the one that is idle for longest gives way.
	d := enter(three, "d", 20, false)
	if d == nil || p.gone() != "[b]" || a.n != 3 {
		t.Errorf("%s had to go", p.gone())
	}
	d.Leave()
	d.Leave()
	if a.n != 2 || len(a.clients) != 2 || len(a.most) != 2 {
		t.Errorf("%d connections of %d clients", a.n, len(a.clients))
	}
	enter(three, "e", 20, true)
	enter(three, "f", 20, true)
	if p.gone() != "[b a]" && p.gone() != "[b c]" {
		t.Errorf("%s had to go", p.gone())
	}
	// The busy stay: of the other clients one gives way.
	if got := enter(one, "g", 30, true); got == nil || p.gone() != "[b a c]" && p.gone() != "[b c a]" {
		t.Errorf("%s had to go", p.gone())
	}
	if got := enter(two, "h", 30, false); got != nil {
		t.Error("one too many")
	}
	if n := reached(a, "connections"); n != 4 {
		t.Errorf("counted %d times", n)
	}
	if n := testutil.ToFloat64(connections.WithLabelValues(a.service().Label)); n != 3 {
		t.Errorf("%v connections are open", n)
	}
}

// Connections that give way end in peace as long as they are a quarter of the places at most.
func TestAdmissionGivesWay(t *testing.T) {
	for _, limits := range [][2]int{{8, 0}, {0, 8}} {
		a, p := admissionFor(t, limits[0], limits[1])
		enter := func(name string) *Slot {
			return a.Enter(netip.MustParseAddr("192.0.2.1"), &guest{name, 1, false, p}, 0)
		}
		var slots []*Slot
		for i := range 8 {
			slots = append(slots, enter(fmt.Sprint(i)))
		}
		for i, cut := range []int{0, 0, 1, 2} {
			if enter("new") == nil || len(p.evicted) != i+1 || p.cut != cut {
				t.Errorf("%v: %d had to go, %d of them at once; want %d and %d", limits, len(p.evicted), p.cut, i+1, cut)
			}
		}
		for _, s := range slots {
			s.Leave()
			s.Leave()
		}
		if a.leaving != 0 {
			t.Errorf("%v: %d still leave", limits, a.leaving)
		}
	}
}

func TestAdmissionOfOneClient(t *testing.T) {
	a, p := admissionFor(t, 100, 2)
	var n int64
	enter := func(addr string, busy bool) *Slot {
		n++
		return a.Enter(netip.MustParseAddr(addr), &guest{addr, n, busy, p}, 0)
	}
	enter("2001:db8::1", false)
	enter("2001:db8:0:ff::2", false)
	enter("2001:db8:0:100::1", false) // another network of /56
	enter("192.0.2.1", false)
	enter("192.0.2.2", false)
	if p.gone() != "[]" {
		t.Fatalf("%s had to go", p.gone())
	}
	enter("2001:db8:0:7::3", true)
	if p.gone() != "[2001:db8::1]" {
		t.Errorf("%s had to go", p.gone())
	}
	enter("2001:db8:0:7::4", true)
	if got := enter("2001:db8::5", false); got != nil {
		t.Error("got in though all are busy")
	}
	if n := reached(a, "client_connections"); n != 3 {
		t.Errorf("counted %d times", n)
	}
	if got := enter("fe80::1%eth0", false); got == nil || !got.of.prefix.IsValid() {
		t.Error("an address with a zone is no client")
	}
}

// Who has as many as a client may have, where there are more than there may be since a reload, ends two: each is closed.
func TestAdmissionEndsTwo(t *testing.T) {
	a, p := admissionFor(t, 4, 2)
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for i, addr := range []netip.Addr{one, one, two, two} {
		a.Enter(addr, &guest{addr.String(), int64(i), false, p}, 0)
	}
	a.limits().Connections = 2
	if got := a.Enter(one, &guest{"new", 9, false, p}, 0); got == nil || a.n != 3 || p.gone() != "[192.0.2.1 192.0.2.2]" {
		t.Errorf("%s had to go, %d are counted", p.gone(), a.n)
	}
}

func TestAdmissionWaits(t *testing.T) {
	a, p := admissionFor(t, 1, 0)
	var clock atomic.Int64
	clock.Store(int64(time.Minute))
	a.now = clock.Load
	addr := netip.MustParseAddr("192.0.2.1")
	first := a.Enter(addr, &guest{"a", 1, true, p}, Forever)
	in := make(chan *Slot)
	go func() { in <- a.Enter(addr, &guest{"b", 2, true, p}, Forever) }()
	select {
	case <-in:
		t.Fatal("did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	first.Leave()
	second := <-in
	if second == nil || p.gone() != "[]" {
		t.Fatalf("%s had to go", p.gone())
	}
	// Who becomes idle makes room, too.
	go func() { in <- a.Enter(addr, &guest{"c", 3, true, p}, Forever) }()
	time.Sleep(10 * time.Millisecond)
	a.mu.Lock()
	second.conn.(*guest).busy = false
	a.mu.Unlock()
	// It is new, since it has waited until now: its query may not have been read yet.
	select {
	case <-in:
		t.Fatalf("%s had to go", p.gone())
	case <-time.After(2 * admissionRetry):
	}
	clock.Add(int64(idleTime))
	if got := <-in; got == nil || p.gone() != "[b]" {
		t.Errorf("%s had to go", p.gone())
	}
	go func() { in <- a.Enter(addr, &guest{"d", 3, true, p}, Forever) }()
	time.Sleep(10 * time.Millisecond)
	a.Close()
	if got := <-in; got != nil {
		t.Error("got in behind the end")
	}
}

func TestAdmissionMove(t *testing.T) {
	a, p := admissionFor(t, 10, 0)
	proxy := netip.MustParseAddr("192.0.2.1")
	x := a.Enter(proxy, &guest{"x", 1, false, p}, 0)
	a.Enter(proxy, &guest{"y", 1, false, p}, 0)
	x.move(tcpAddr("198.51.100.1"))
	if a.n != 2 || len(a.clients) != 2 || x.of.prefix.String() != "198.51.100.1/32" {
		t.Errorf("%d connections of %d clients, x of %v", a.n, len(a.clients), x.of.prefix)
	}
	x.Leave()
	x.move(tcpAddr("192.0.2.1"))
	if a.n != 1 || len(a.clients) != 1 {
		t.Errorf("%d connections of %d clients", a.n, len(a.clients))
	}
}

// A connection that is new stays, and what comes waits until one is idle for long enough; but not if its client is
// the one with most.
func TestAdmissionOfFresh(t *testing.T) {
	a, p := admissionFor(t, 3, 2)
	var clock atomic.Int64
	clock.Store(int64(time.Minute))
	a.now = clock.Load
	one, two, three := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	enter := func(addr netip.Addr, name string) *Slot {
		return a.Enter(addr, &guest{name, clock.Load(), false, p}, Forever)
	}
	enter(one, "a")
	enter(one, "b")
	enter(two, "c")
	if enter(one, "d") != nil {
		t.Error("a third one of a client that may have two")
	}
	a.limits().Client = 4
	if enter(one, "e") != nil {
		t.Error("the client with most gets more")
	}
	in := make(chan *Slot)
	go func() { in <- enter(three, "f") }()
	select {
	case <-in:
		t.Fatal("did not wait")
	case <-time.After(2 * admissionRetry):
	}
	if p.gone() != "[]" {
		t.Errorf("%s had to go", p.gone())
	}
	clock.Add(int64(idleTime))
	if got := <-in; got == nil || p.gone() != "[a]" && p.gone() != "[b]" {
		t.Errorf("%s had to go", p.gone())
	}
}

// One client opens more connections than give way in a second: others need not wait behind him.
func TestAdmissionBehindAFlood(t *testing.T) {
	a, p := admissionFor(t, 4, 0)
	clock := int64(time.Minute)
	a.now = func() int64 { return clock }
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	enter := func(addr netip.Addr, name string) *Slot { return a.Enter(addr, &guest{name, clock, false, p}, 0) }
	enter(two, "honest")
	for _, name := range []string{"a", "b", "c"} {
		clock++
		enter(one, name)
	}
	if enter(one, "d") != nil || p.gone() != "[]" {
		t.Errorf("%s had to go at once", p.gone())
	}
	clock += int64(idleTime) / 20
	for _, name := range []string{"d", "e", "f"} {
		if enter(one, name) == nil {
			t.Errorf("%s is to wait", name)
		}
	}
	if p.gone() != "[a b c]" {
		t.Errorf("%s had to go", p.gone())
	}
	clock += int64(idleTime) / 20
	if enter(two, "more") == nil || p.gone() != "[a b c d]" && p.gone() != "[a b c e]" && p.gone() != "[a b c f]" {
		t.Errorf("%s had to go", p.gone())
	}
}

// What has been idle for long ends, what is at work stays; and how full it is can be asked.
func TestEvictIdle(t *testing.T) {
	a, p := admissionFor(t, 4, 0)
	addr := netip.MustParseAddr("192.0.2.1")
	for i, name := range []string{"a", "b", "c", "d"} {
		if a.Full() || a.HalfFull() != (i > 2) {
			t.Errorf("%d of 4: full %v, half full %v", i, a.Full(), a.HalfFull())
		}
		a.Enter(addr, &guest{name, int64(i), i%2 == 0, p}, 0)
	}
	if !a.Full() {
		t.Error("4 of 4: not full")
	}
	p.owed = true
	a.EvictIdle(0)
	if got := p.gone(); got != "[]" || a.n != 4 {
		t.Errorf("%s had to go, though they are owed something, and %d are left", got, a.n)
	}
	p.owed = false
	a.EvictIdle(time.Duration(a.now() - 2)) // d had a query after that
	if got := p.gone(); got != "[b]" || a.n != 3 {
		t.Errorf("%s had to go, %d are left", got, a.n)
	}
	a.EvictIdle(time.Duration(a.now() - 3))
	if got := p.gone(); got != "[b d]" && got != "[d]" || a.n != 2 {
		t.Errorf("%s had to go, %d are left", got, a.n)
	}
	a.limits().Connections = 0
	if a.Full() || a.HalfFull() {
		t.Error("0 is a bound")
	}
	if least := idleTime; Patience() <= least {
		t.Errorf("patience of %v, though places are given up after %v", Patience(), least)
	}
}

// TestAdmissionFlood lets one client open connections by the thousand: others do not notice.
func TestAdmissionFlood(t *testing.T) {
	a, p := admissionFor(t, 200, 0)
	var honest []string
	for i := range 20 {
		name := fmt.Sprint("honest", i)
		honest = append(honest, name)
		a.Enter(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), &guest{name, 0, false, p}, 0)
	}
	for i := range 10000 {
		if a.Enter(netip.MustParseAddr("192.0.2.1"), &guest{"flood", int64(i), false, p}, 0) == nil {
			t.Fatal("refused")
		}
	}
	for _, name := range honest {
		if slices.Contains(p.evicted, name) {
			t.Errorf("%s had to go", name)
		}
	}
	if a.n != 200 || len(p.evicted) != 10000+20-200 {
		t.Errorf("%d connections, %d had to go", a.n, len(p.evicted))
	}
}

func TestAdmissionConcurrently(t *testing.T) {
	a, p := admissionFor(t, 50, 20)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var mine []*Slot
			for i := range 500 {
				addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 7)})
				if tk := a.Enter(addr, &guest{"x", int64(i), i%3 == 0, p}, 0); tk != nil {
					mine = append(mine, tk)
				}
				if len(mine) > 5 {
					mine[0].move(&net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(g))})
					mine[0].Leave()
					mine = mine[1:]
				}
			}
			for _, tk := range mine {
				tk.Leave()
			}
		})
	}
	wg.Wait()
	if a.n != 0 || len(a.clients) != 0 || len(a.most) != 0 || testutil.ToFloat64(connections.WithLabelValues(a.service().Label)) != 0 {
		t.Errorf("%d connections of %d clients are left", a.n, len(a.clients))
	}
}

func BenchmarkAdmission(b *testing.B) {
	s := &service.Service{Label: "dns://bench", Limits: service.Limits{Connections: 16384, Bits4: 32, Bits6: 56}}
	a, p := NewAdmission(coretest.SeatOf(s)), new(party)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.evicted = p.evicted[:0]
		a.Enter(netip.AddrFrom4([4]byte{192, 0, byte(i >> 4), byte(i)}), &guest{"x", int64(i), false, p}, 0)
	}
}
