package secondary

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// hung is a primary that takes connections, and never says anything. It counts them.
func hung(t *testing.T) (addr string, taken *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken = new(atomic.Int64)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String(), taken
}

// TestHungPrimary: a primary that takes connections and says nothing is waited for by some zones. Then all are fetched from the
// next one, though many wait for room, and no room for transfers is held for it.
func TestHungPrimary(t *testing.T) {
	logtest.Capture(t)
	mute, taken := hung(t)
	p := newPrimary(t)
	shared := newRooms()
	shared.checks = newRoom(silentTo)
	from := &source{primaries: []string{mute, p.addr}, limits: fetch.Limits{Idle: 2 * time.Second}}
	var replicas []*replica
	var wg sync.WaitGroup
	for i := range 5 * silentTo {
		name := fmt.Sprintf("z%d.example.org.", i)
		p.set(name, text(1, slow))
		r := newReplica(name, from, shared)
		replicas = append(replicas, r)
		wg.Go(func() { r.first(t.Context()) })
	}
	wg.Wait()
	for _, r := range replicas {
		if r.zone.Current() == nil {
			t.Errorf("%s was not fetched", r.name())
		}
	}
	// Until the last of those that had room has waited, others come in.
	if n := taken.Load(); n < silentTo || n >= 2*silentTo {
		t.Errorf("the silent primary was asked %d times", n)
	}
}

// drip is a primary whose zones come a record in a message each 10 ms, so many in all; 0 is without end.
func drip(t *testing.T, records int) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, started := make(chan struct{}), make(chan struct{})
	s := &dns.Server{Listener: l, NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.SOA(r.Question[0].Name + " 60 IN SOA ns.example. h.example. 1 7200 3600 1209600 60")}
		soa, err := m.Answer, w.WriteMsg(m)
		for i := 0; err == nil && r.Question[0].Qtype != dns.TypeSOA; i++ {
			if i == records && records > 0 {
				m.Answer = soa
				w.WriteMsg(m)
				return
			}
			time.Sleep(10 * time.Millisecond)
			m.Answer = []dns.RR{test.A(fmt.Sprintf("a%d.%s 60 IN A 192.0.2.1", i, r.Question[0].Name))}
			err = w.WriteMsg(m)
		}
	})}
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() {
		s.Shutdown()
		<-done
	})
	return l.Addr().String()
}

// TestDrip: two primaries that drip have all the room, until another zone wants to be fetched. While nobody does they go on.
func TestDrip(t *testing.T) {
	out := logtest.Capture(t)
	shared := newRooms()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for i, places := range []int{maxShare, maxTransfers - maxShare} {
		from := &source{primaries: []string{drip(t, 0)}, limits: fetch.Limits{Pace: 50 * time.Millisecond}}
		for j := range places {
			r := newReplica(fmt.Sprintf("z%d.p%d.example.", j, i), from, shared)
			wg.Go(func() { r.first(ctx) })
		}
	}
	eventually.Holds(t, "the room to be full", func() bool { return len(shared.transfers.places) == maxTransfers })
	time.Sleep(150 * time.Millisecond)
	if said := out.String(); said != "" {
		t.Errorf("given up, though nobody waits: %s", said)
	}
	p := newPrimary(t)
	p.set("example.org.", text(1, slow))
	r := newReplica("example.org.", &source{primaries: []string{p.addr}}, shared)
	wg.Go(func() { r.first(ctx) })
	eventually.Holds(t, "the zone of another primary", func() bool { return r.zone.Current() != nil })
	eventually.Holds(t, "why it was", func() bool { return strings.Contains(out.String(), "it is too slow, and others wait") })
}

// TestDripOrAnother: a zone is fetched from its next primary if the first one drips.
func TestDripOrAnother(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.1"))
	r := newReplica("example.org.", &source{primaries: []string{drip(t, 0), p.addr}, limits: fetch.Limits{Pace: 50 * time.Millisecond}}, newRooms())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() { r.first(ctx) })
	eventually.Holds(t, "the zone", func() bool { return r.zone.Current() != nil })
}

// TestDripOrNone: a primary that drips is better than none, whether there is a version of the zone or not.
func TestDripOrNone(t *testing.T) {
	for _, before := range []string{"", text(0, slow)} {
		logtest.Capture(t)
		r := newReplica("example.org.", &source{primaries: []string{drip(t, 30), loopback.Addr()}, limits: fetch.Limits{Pace: 50 * time.Millisecond}}, newRooms())
		if before != "" {
			parsed, err := file.Parse(strings.NewReader(before), "example.org.", "db", -1)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.serve(parsed.Current(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		r.look(t.Context(), "")
		if v := r.zone.Current(); v == nil || v.Serial() != 1 || r.plan.Retrying() {
			t.Errorf("with %q before it is not fetched", before)
		}
	}
}

// TestHeard: a primary that answers for other zones is not silent, nor is one that does not answer for a single zone.
func TestHeard(t *testing.T) {
	const primary = "192.0.2.1:53"
	r, begun := newRooms(), time.Now()
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	for i := range 2 * silentTo {
		if r.silent(primary, "one.", at(i), at(i+1)); r.isSilent(primary, at(i+1)) {
			t.Fatal("left alone for one zone")
		}
	}
	zones := func(from int) {
		for i := range silentTo {
			r.silent(primary, fmt.Sprint("z", i), at(from), at(from+1))
		}
	}
	r.heard(primary, at(21))
	if zones(20); r.isSilent(primary, at(22)) {
		t.Error("left alone, though it answered meanwhile")
	}
	if zones(30); !r.isSilent(primary, at(31)) {
		t.Error("not left alone, though it said nothing since")
	}
	if r.heard(primary, at(32)); r.isSilent(primary, at(33)) {
		t.Error("left alone, though it has come back")
	}
}

// TestNotifiedWhileThere: a notification of a primary that is there does not have the next one ignored, should the primary
// be away for a moment between them; nor does an attempt from before count that ended behind its return.
func TestNotifiedWhileThere(t *testing.T) {
	const primary = "192.0.2.1:53"
	r, begun := newRooms(), time.Now()
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	r.notified(primary, at(0))
	r.unreachable(primary, at(0), at(1))
	if r.notified(primary, at(2)); r.isSilent(primary, at(2)) {
		t.Error("the notification of one that is back was ignored")
	}
	r.unreachable(primary, at(2), at(3))
	if r.notified(primary, at(4)); !r.isSilent(primary, at(4)) {
		t.Error("asked for each notification, though it does not answer")
	}
	r.heard(primary, at(5))
	if r.unreachable(primary, at(4), at(6)); r.isSilent(primary, at(6)) {
		t.Error("left alone, though it answered meanwhile")
	}
}

// TestSilentNotifies: a primary that notifies us is asked, though it did not answer a moment ago.
func TestSilentNotifies(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.1"))
	s := begin(t, "secondary example.org {\ntransfer from "+p.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.1")
	p.set("example.org.", text(2, slow, "a A 192.0.2.2"))
	s.roster.rooms.unreachable(p.addr, time.Now(), time.Now())
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.2")
}

// TestSilentNotifiesFirst: so is one of a zone that has not come yet, and before those that stand in front of it.
func TestSilentNotifiesFirst(t *testing.T) {
	logtest.Capture(t)
	mute, taken := hung(t)
	p := newPrimaryAt(t, "127.0.0.2")
	p.set("example.org.", text(1, slow))
	r := newReplica("example.org.", &source{primaries: []string{mute, p.addr}, limits: fetch.Limits{Idle: time.Second}}, newRooms())
	r.rooms.unreachable(p.addr, time.Now(), time.Now())
	r.notify(netip.MustParseAddr("127.0.0.2"))
	if r.first(t.Context()); r.zone.Current() == nil || taken.Load() > 0 {
		t.Errorf("fetched: %v; another primary was asked %d times", r.zone.Current() != nil, taken.Load())
	}
}

// TestShare: transfers from one primary leave room for those from others.
func TestShare(t *testing.T) {
	r := newRooms()
	for range maxShare {
		if _, _, err := r.enterTransfer(t.Context(), "192.0.2.1:53"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := r.enterTransfer(ctx, "192.0.2.1:53"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one primary has all the room: %v", err)
	}
	var leaves []func()
	for range maxTransfers - maxShare {
		leave, _, err := r.enterTransfer(t.Context(), "192.0.2.2:53")
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	for _, leave := range leaves {
		leave()
	}
	if len(r.transfers.places) != maxShare {
		t.Errorf("%d transfers, want %d", len(r.transfers.places), maxShare)
	}
}
