package recurse

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// halfSilent is a resolver of example.org., whose server answers, and of zones z0. to z7., whose servers do not.
func halfSilent(t *testing.T, edit func(*settings)) *resolver {
	known := startSlow(t, time.Millisecond)
	return silent(t, func(s *settings) {
		never := s.stubs[rrset.MustName("example.org.")].Hosts
		for i := range 8 {
			zone := rrset.MustName(fmt.Sprintf("z%d.", i))
			s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: never}
		}
		zone := rrset.MustName("example.org.")
		s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{known.at.Addr()}, Port: known.at.Port()}}}
		s.timeout = time.Minute
		edit(s)
	})
}

// parkable is a query of a client that gives its place away.
func parkable(t *testing.T, client, name string) *wire.Query {
	q := queryFrom(t, client, name)
	q.SetCrowded(nil, eventloop.Parked)
	return q
}

// isGone reports whether j gave way.
func isGone(j *job) bool { return j.Over() && j.gone }

// Names of many zones whose servers are silent do not keep all places: the one that has waited longest gives way, and all
// others wait on.
func TestSilentZonesGiveWay(t *testing.T) {
	const most = 40
	r := halfSilent(t, func(s *settings) { s.recursions = most })
	began := time.Now()
	var jobs []*job
	for i := range most {
		j, limit := r.beginFor(parkable(t, fmt.Sprintf("192.0.2.%d", i), fmt.Sprintf("n%d.z%d.", i, i%8)), nil, nil, unlooked)
		if j == nil {
			t.Fatal(limit)
		}
		jobs = append(jobs, j)
	}
	known := func(i int) *job {
		j, limit := r.beginFor(parkable(t, "192.0.2.99", fmt.Sprintf("n%d.example.org.", i)), nil, nil, unlooked)
		if j == nil && limit != "max_recursions" {
			t.Errorf("limit %s", limit)
		}
		return j
	}
	if known(0) != nil && time.Since(began) < 100*time.Millisecond {
		t.Error("one gave way at once")
	}
	for i := range 3 {
		var j *job
		eventually.Holds(t, "one gives way", func() bool { j = known(i); return j != nil })
		if j.wait(context.Background()); j.result.Rcode != wire.Success || len(j.result.Answer) != 1 {
			t.Fatalf("number %d: %+v", i, j.result)
		}
		if again, limit := r.beginFor(parkable(t, "192.0.2.99", fmt.Sprintf("more%d.z0.", i)), nil, nil, unlooked); again == nil {
			t.Errorf("number %d: its place is not free: %s", i, limit)
		}
	}
	gone := 0
	for _, j := range jobs {
		switch {
		case isGone(j):
			gone++
			if j.result.Rcode != wire.ServFail || j.result.Text != tooMany {
				t.Errorf("%+v", j.result)
			}
		case j.Over():
			t.Errorf("one ended otherwise: %+v", j.result)
		}
	}
	if gone == 0 || gone > 6 { // another one where a loop looks at the same time
		t.Errorf("%d gave way", gone)
	}
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	if n := len(r.clients.all); n > most-gone+1 {
		t.Errorf("%d clients have places, of %d of which %d gave way", n, most, gone)
	}
}

// Who has as many queries as a client may have loses the one of these that has waited longest, and nobody else's.
func TestClientGivesWay(t *testing.T) {
	r := halfSilent(t, func(s *settings) { s.recursions = 65536 })
	begin := func(client, name string) *job {
		j, limit := r.beginFor(parkable(t, client, name), nil, nil, unlooked)
		if j == nil && limit != "client" {
			t.Errorf("limit %s", limit)
		}
		return j
	}
	other := begin("192.0.2.1", "other.z0.")
	var jobs []*job
	for i := range waitingPerClient {
		jobs = append(jobs, begin("192.0.2.2", fmt.Sprintf("n%d.z%d.", i, i%8)))
	}
	var j *job
	eventually.Holds(t, "one gives way", func() bool { j = begin("192.0.2.2", "www.example.org."); return j != nil })
	if j.wait(context.Background()); j.result.Rcode != wire.Success {
		t.Errorf("%+v", j.result)
	}
	gone := 0
	for _, j := range jobs {
		if isGone(j) {
			gone++
		}
	}
	if gone != 1 || isGone(other) {
		t.Errorf("%d gave way, another client's: %t", gone, isGone(other))
	}
}

// Who has just joined what another one has waited for does not give way with it, but asks once more.
func TestWhoJoinedLatelyStays(t *testing.T) {
	r := halfSilent(t, func(s *settings) { s.minimise, s.timeout = iterate.Relaxed, 30*time.Second })
	begin := func(name string) *job {
		j, limit := r.beginFor(parkable(t, "192.0.2.1", name), nil, nil, unlooked)
		if j == nil {
			t.Fatal(limit)
		}
		return j
	}
	joined := func(n int) bool {
		s := r.flights.of(rrset.MustName("z0."))
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.all {
			if len(f.joined) == n {
				return true
			}
		}
		return false
	}
	for round := 0; ; round++ {
		below := fmt.Sprintf(".below%d.z0.", round)
		old := begin("old" + below)
		eventually.Holds(t, "it asks", func() bool { return joined(1) })
		time.Sleep(eventloop.LeastPatience)
		young := begin("young" + below)
		eventually.Holds(t, "it joins", func() bool { return joined(2) })
		eventually.Holds(t, "one gives way", r.makeRoom)
		if !isGone(old) {
			t.Error("the old one stays")
		}
		if time.Since(young.began) >= eventloop.LeastPatience && round < 9 { // a machine that is busy
			continue
		}
		if young.Over() {
			t.Errorf("the young one ended: %+v", young.result)
		}
		eventually.Holds(t, "it asks once more", func() bool { return joined(1) })
		return
	}
}

// A client who has nothing to give keeps nobody else from making room.
func TestLooksAreApart(t *testing.T) {
	r := halfSilent(t, func(*settings) {})
	j, _ := r.beginFor(parkable(t, "192.0.2.1", "www.z0."), nil, nil, unlooked)
	other := netip.MustParseAddr("192.0.2.2")
	eventually.Holds(t, "one gives way", func() bool {
		if r.makeRoomOf(other) {
			t.Error("another client's gave way")
		}
		return r.makeRoom()
	})
	if !isGone(j) {
		t.Error("it did not give way")
	}
	if r.looked.all.Store(0); r.makeRoomOf(other) || r.looked.all.Load() != 0 {
		t.Error("that a client has none is taken for all")
	}
}

// After the clock was set back, somebody gives way all the same.
func TestGivesWayWithAClockSetBack(t *testing.T) {
	r := halfSilent(t, func(*settings) {})
	j, _ := r.beginFor(parkable(t, "192.0.2.1", "www.z0."), nil, nil, unlooked)
	r.looked.all.Store(time.Now().Add(time.Hour).UnixNano())
	eventually.Holds(t, "one gives way", r.makeRoom)
	if !isGone(j) {
		t.Error("it did not give way")
	}
}

// What goes on for nobody, when its clients have had their answer, has no place to give.
func TestNobodyGivesWay(t *testing.T) {
	r := halfSilent(t, func(s *settings) { s.timeout = 300 * time.Millisecond })
	j, _ := r.beginFor(parkable(t, "192.0.2.1", "www.z0."), nil, nil, unlooked)
	j.wait(context.Background())
	if r.makeRoom() {
		t.Error("room was made where none was taken")
	}
	under := 0
	for i := range r.flights.shards {
		s := &r.flights.shards[i]
		s.mu.Lock()
		under += len(s.all)
		s.mu.Unlock()
	}
	if isGone(j) || under == 0 {
		t.Errorf("it gave way: %t; %d exchanges go on", isGone(j), under)
	}
}

// Nothing is begun for a query that there is no room for; what is kept is answered.
func TestNothingBegunInACrowd(t *testing.T) {
	r := halfSilent(t, func(*settings) {})
	h := &Recurse{zones: []string{rrset.Root}, resolver: r}
	full := true
	var w wire.Reply
	ask := func() (wire.Outcome, *job) {
		q := parkable(t, "192.0.2.1", "www.example.org.")
		q.SetCrowded(func() bool { return full }, eventloop.Parked)
		w.Reset(nil)
		out := h.ServeWire(context.Background(), &w, q)
		j, _ := q.Awaited().(*job)
		return out, j
	}
	if out, j := ask(); out != wire.Park || j != nil || len(r.jobs.all) != 0 {
		t.Errorf("without room: outcome %v, a job was begun: %t", out, j != nil)
	}
	full = false
	out, j := ask()
	if out != wire.Park || j == nil {
		t.Fatalf("with room: outcome %v", out)
	}
	j.wait(context.Background())
	full = true
	if out, _ := ask(); out != wire.Done || w.Failed() || w.Rcode() != wire.Success {
		t.Errorf("what is kept: outcome %v, rcode %d", out, w.Rcode())
	}
}

// A query that gave way is dropped over UDP, and fails over a connection; one of the resolver's own does not give way.
func TestGoneIsTold(t *testing.T) {
	r := halfSilent(t, func(*settings) {})
	h := &Recurse{zones: []string{rrset.Root}, resolver: r, Next: test.ErrorHandler()}
	leave := func(what string) {
		t.Helper()
		eventually.Holds(t, what+" gives way", func() bool { return r.makeRoom() })
	}
	count := func() float64 { return testutil.ToFloat64(limits.WithLabelValues(r.counts.server, "gave_way")) }
	before := count()
	r.own(jobKey{rrset.MustName("own.z0."), wire.TypeA, ""})
	for i, stream := range []bool{false, true} {
		q := parkable(t, "192.0.2.1", fmt.Sprintf("wire%d.z1.", i))
		if stream {
			q.Peer.Proto = wire.TCP
		}
		var w wire.Reply
		w.Reset(nil)
		if out := h.ServeWire(context.Background(), &w, q); out != wire.Park {
			t.Fatalf("outcome %v", out)
		}
		leave("the query")
		switch out := h.ServeWire(context.Background(), &w, q); {
		case stream && (out != wire.Done || !w.Failed() || w.Rcode() != wire.ServFail):
			t.Errorf("over a connection: outcome %v, rcode %d", out, w.Rcode())
		case !stream && (out != wire.Park || q.Awaited() != nil):
			t.Errorf("over UDP: outcome %v, awaits %v", out, q.Awaited())
		}
		var client dns.ResponseWriter = new(test.ResponseWriter)
		if stream {
			client = &test.ResponseWriter{TCP: true}
		}
		rec := dnstest.NewRecorder(client)
		over := make(chan int)
		go func() {
			ctx := context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)
			rcode, _ := h.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion(fmt.Sprintf("message%d.z1.", i), dns.TypeA))
			over <- rcode
		}()
		leave("the message")
		if rcode := <-over; rec.Msg != nil || (rcode == dns.RcodeServerFailure) != stream {
			t.Errorf("in the message lane, stream %t: rcode %d, reply %v", stream, rcode, rec.Msg)
		}
	}
	if n := count() - before; n != 3 { // that over UDP is counted by who dropped it
		t.Errorf("%v that gave way were counted, want 3", n)
	}
	time.Sleep(300 * time.Millisecond) // the time after which it would
	if r.makeRoom() {
		t.Error("one of the resolver's own gave way")
	}
}
