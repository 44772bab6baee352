package secondary

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// served is a replica that has a version of a zone already.
func served(t *testing.T, version string, from *source) *replica {
	t.Helper()
	r := newReplica("example.org.", from, newRooms())
	parsed, err := file.Parse(strings.NewReader(version), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.serve(parsed.Current(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNewerNotGiven: a primary tells of a newer version, and does not give it. That another one has ours does not end
// it: the zone is right, and the newer version is fetched after the retry time.
func TestNewerNotGiven(t *testing.T) {
	out := logtest.Capture(t)
	lags, first := newPrimaryAt(t, "127.0.0.1"), newPrimaryAt(t, "127.0.0.2")
	for _, p := range []*primary{lags, first} {
		p.set("example.org.", text(1, "7200 1 1209600", "a A 192.0.2.1"))
	}
	s := begin(t, "secondary example.org {\ntransfer from "+first.addr+" "+lags.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.1")
	began := time.Now()
	first.refuses.Store(true)
	first.set("example.org.", text(2, "7200 1 1209600", "a A 192.0.2.2"))
	notify(t, s, "example.org.", "127.0.0.2")
	out.Await(t, "Notify from 127.0.0.2 for example.org.: transfer failed: the primary answers REFUSED")
	eventually.Holds(t, "that the zone is right", func() bool {
		return timeOf(&s.roster.replica("example.org.").times.expires).After(began.Add(1209600 * time.Second))
	})
	first.refuses.Store(false)
	becomes(t, s, "a.example.org.", "192.0.2.2")
	if said := out.String(); strings.Contains(said, "no SOA serial increase seen") {
		t.Errorf("logged %s", said)
	}
}

// TestNewerNotGivenByAny: why the newer version did not come is told, and not that another primary is not there,
// either.
func TestNewerNotGivenByAny(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow))
	p.refuses.Store(true)
	r := served(t, text(0, slow), &source{primaries: []string{p.addr, loopback.Addr()}})
	if right, err := r.refresh(t.Context(), ""); right || !isTransfer(err) {
		t.Errorf("%v, %v", right, err)
	}
}

// TestExpiresMeanwhile: a zone expires when it is time, also while a transfer drags on. What it brings is served.
func TestExpiresMeanwhile(t *testing.T) {
	logtest.Capture(t)
	from := drip(t, 600)
	r := served(t, text(0, "1 1 2", "a A 192.0.2.1"), &source{primaries: []string{from}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() { r.run(ctx, false) })
	eventually.Holds(t, "the end of the zone's time", func() bool { return r.zone.Status("").Expired })
	if v := r.zone.Current(); v.Serial() != 0 {
		t.Errorf("version %d has come before", v.Serial())
	}
	eventually.Holds(t, "the next version", func() bool { return r.zone.Current().Serial() == 1 && !r.zone.Status("").Expired })
}

// TestDripOrWhoNotifies: a primary that drips is given up if another one notifies us meanwhile, which did not answer
// before.
func TestDripOrWhoNotifies(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimaryAt(t, "127.0.0.2")
	p.down.Store(true)
	p.set("example.org.", text(1, slow))
	dripping := drip(t, 0)
	r := newReplica("example.org.", &source{primaries: []string{p.addr, dripping}, limits: fetch.Limits{Pace: 50 * time.Millisecond}}, newRooms())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() { r.run(ctx, false) })
	eventually.Holds(t, "a transfer that drips", func() bool {
		return strings.Contains(out.String(), "closed the connection") && len(r.rooms.transfers.places) > 0
	})
	r.notify(netip.MustParseAddr("127.0.0.1")) // who drips says so once more
	time.Sleep(150 * time.Millisecond)
	if said := out.String(); strings.Contains(said, "too slow") {
		t.Errorf("given up for itself: %s", said)
	}
	p.down.Store(false)
	r.notify(netip.MustParseAddr("127.0.0.2"))
	eventually.Holds(t, "the zone", func() bool { return r.zone.Current() != nil })
	if said := out.String(); strings.Count(said, "from \""+dripping) != 1 {
		t.Errorf("logged %s", said)
	}
}

// TestFloodOfNotifications: notifications in the name of a primary that says nothing, which may be forged, have it
// asked now and then, and not for each of them: zones with other primaries would wait for room.
func TestFloodOfNotifications(t *testing.T) {
	logtest.Capture(t)
	mute, taken := hung(t)
	p := newPrimaryAt(t, "127.0.0.2")
	shared := newRooms()
	shared.checks = newRoom(silentTo)
	from := &source{primaries: []string{mute, p.addr}, limits: fetch.Limits{Idle: 2 * time.Second}}
	var wg sync.WaitGroup
	for i := range 3 * silentTo {
		name := fmt.Sprintf("z%d.example.org.", i)
		p.set(name, text(1, slow))
		r := newReplica(name, from, shared)
		wg.Go(func() {
			for range 3 {
				r.notify(netip.MustParseAddr("127.0.0.1"))
				r.look(t.Context(), "127.0.0.1")
			}
			if r.zone.Current() == nil {
				t.Errorf("%s was not fetched", name)
			}
		})
	}
	wg.Wait()
	// It is asked until it counts as silent, and once more for the first notification behind that: by silentTo zones, and
	// those that come while the last of these wait.
	if n := taken.Load(); n < silentTo || n >= 4*silentTo {
		t.Errorf("the silent primary was asked %d times", n)
	}
}
