package secondary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/transfer"
)

// TestLife tells the story of a zone.
func TestLife(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	none := newPrimary(t)
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s %s\nfallthrough sub.example.org\n}", none.addr, p.addr))
	becomes(t, s, "a.example.org.", "SERVFAIL")
	if got := notify(t, s, "example.org.", "127.0.0.1"); got != 0 {
		t.Errorf("a notification for a zone that is not there: %d", got)
	}
	out.Await(t, "masters failed to transfer")
	eventually.Holds(t, "the failure is shown", func() bool { return s.ZoneStatus()[0].Failure != "" })
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	eventually.Holds(t, "no failure is shown", func() bool { return s.ZoneStatus()[0].Failure == "" })
	for name, want := range map[string]string{"x.example.org.": "NXDOMAIN", "x.sub.example.org.": "NOTZONE", "example.net.": "NOTZONE"} {
		if got := ask(t, s, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, want := range []string{
		"[ERROR] plugin/file: Failed to transfer `example.org.' from \"" + none.addr + `": the primary answers`,
		"[WARNING] plugin/secondary: All 'example.org.' masters failed to transfer, retrying in ",
		"[INFO] plugin/file: Transferred: example.org. from " + p.addr,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s\nwant %s", out, want)
		}
	}

	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	if got := notify(t, s, "example.org.", "192.0.2.99"); got != -1 {
		t.Errorf("a notification from anybody: %d", got)
	}
	if got := notify(t, s, "example.org.", "127.0.0.1"); got != 0 {
		t.Errorf("a notification: %d", got)
	}
	becomes(t, s, "a.example.org.", "192.0.2.8")
	if got := p.transfers(); !strings.HasSuffix(got, "AXFR IXFR") {
		t.Errorf("transfers: %s", got)
	}
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the check", func() bool {
		return strings.Contains(out.String(), "Notify from 127.0.0.1 for example.org.: no SOA serial increase seen")
	})
	for _, want := range []string{"Dropping notify from 192.0.2.99 for example.org.", "Notify from 127.0.0.1 for example.org.: checking transfer"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %s\nwant %s", out, want)
		}
	}

	p.refuses.Store(true)
	p.set("example.org.", text(3, slow, "a A 192.0.2.9"))
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the failed transfer", func() bool {
		return strings.Contains(out.String(), "[WARNING] plugin/secondary: Notify from 127.0.0.1 for example.org.: transfer failed: ")
	})
	if z := s.ZoneStatus()[0]; !strings.Contains(z.Failure, "REFUSED") || z.Failing.IsZero() || z.Serial != 2 {
		t.Errorf("shown is %+v", z)
	}

	p.down.Store(true)
	none.down.Store(true)
	notify(t, s, "example.org.", "127.0.0.1")
	eventually.Holds(t, "the failure", func() bool {
		return strings.Contains(out.String(), "Notify from 127.0.0.1 for example.org.: failed primary check: ")
	})
	if got := ask(t, s, "a.example.org."); got != "192.0.2.8" {
		t.Errorf("the primary is down: %s", got)
	}
	if v, err := s.Version("example.org."); err != nil || v.Serial() != 2 {
		t.Errorf("to transfer on: %v", err)
	}
	if _, err := s.Version("a.example.org."); err != transfer.ErrNotAuthoritative {
		t.Errorf("to transfer on, another name: %v", err)
	}
}

// TestStorm: a thousand notifications in a row cost a few queries and lines, and what is new comes all the same.
func TestStorm(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, "secondary example.org {\ntransfer from "+p.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.7")
	before, begun := p.queries.Load(), time.Now()
	for range 1000 {
		notify(t, s, "example.org.", "127.0.0.1")
		notify(t, s, "example.org.", "192.0.2.99")
		time.Sleep(500 * time.Microsecond)
	}
	took := time.Since(begun)
	most := 6 + int64(took/time.Second)
	if n := p.queries.Load() - before; n > most {
		t.Errorf("%d queries in %v", n, took)
	}
	if n := strings.Count(out.String(), "otify"); n > int(2*most)+10*int(1+took/time.Second+1) {
		t.Errorf("%d lines in %v", n, took)
	}
	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
}

// TestTimers: the zone is looked at as its SOA record tells, expires, and comes back.
func TestTimers(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, "1 1 2", "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.down.Store(true)
	becomes(t, s, "a.example.org.", "SERVFAIL")
	if !strings.Contains(out.String(), "Zone example.org. is expired") {
		t.Errorf("logged %s", out)
	}
	if _, err := s.Version("example.org."); err == nil {
		t.Error("an expired zone is transferred on")
	}
	p.down.Store(false)
	becomes(t, s, "a.example.org.", "192.0.2.7")
}

// TestExpire: what is too old is not served, to the moment.
func TestExpire(t *testing.T) {
	now := time.Now()
	z, err := file.Parse(strings.NewReader(text(1, "100 50 1000")), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	r := newReplica("example.org.", new(source), nil)
	if got := r.expire(now, now.Add(time.Hour)); got != time.Hour {
		t.Errorf("without data: %s", got)
	}
	if err := r.serve(z.Current(), now); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		at, next, wait time.Duration
		expired        bool
	}{{0, 105, 105, false}, {0, 2000, 1000, false}, {999, 1050, 1, false}, {1000, 1050, 50, true}} {
		got := r.expire(now.Add(tc.at*time.Second), now.Add(tc.next*time.Second))
		if got != tc.wait*time.Second || r.zone.Expired != tc.expired {
			t.Errorf("after %d s: wait %s, expired %v", tc.at, got, r.zone.Expired)
		}
	}
}

func TestSigned(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\ntsig key.example.org hmac-sha512\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(2, slow, "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
	if strings.Contains(out.String(), "ERROR") {
		t.Errorf("logged %s", out)
	}
	bad := &source{key: s.roster.replica("example.org.").source.key}
	if err := bad.prepare(func(string) (keyring.Key, bool) { return keyring.Key{}, false }); err == nil || !strings.Contains(err.Error(), `there is no key "key.example.org."`) {
		t.Errorf("a key that is not there: %v", err)
	}
}

func TestDigest(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "@ ZONEMD 1 1 1 "+strings.Repeat("00", 48)))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nzonemd\n}", p.addr))
	out.Await(t, "the ZONEMD record does not match the zone's data")
	if got := ask(t, s, "ns.example.org."); got != "SERVFAIL" {
		t.Errorf("got %s", got)
	}
}

// TestLimits: a zone that is too large leaves the one before.
func TestLimits(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow, "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nmax_records 8\nmax_octets 10000\nmax_time 1s\n}", p.addr))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(2, slow, "a A 192.0.2.8", "$GENERATE 1-20 h$ A 192.0.2.1"))
	notify(t, s, "example.org.", "127.0.0.1")
	out.Await(t, "more than 8 records")
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" {
		t.Errorf("got %s", got)
	}
}

// TestRooms: a primary that says nothing is left alone for a while, by all zones.
func TestRooms(t *testing.T) {
	logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(1, slow))
	r := newReplica("example.org.", &source{primaries: []string{p.addr}}, newRooms())
	now := time.Now()
	r.rooms.unreachable(p.addr, now, now)
	if _, err := r.serial(t.Context(), p.addr); !errors.Is(err, errSilent) || p.queries.Load() != 0 {
		t.Errorf("%v, %d queries", err, p.queries.Load())
	}
	if r.rooms.isSilent(p.addr, now.Add(silence)) || r.rooms.isSilent("192.0.2.1:53", now) {
		t.Error("left alone for too long, or for another's silence")
	}
	r.rooms.unreachable(p.addr, now.Add(-silence), now.Add(-silence))
	if serial, err := r.serial(t.Context(), p.addr); err != nil || serial != 1 {
		t.Errorf("serial %d, %v", serial, err)
	}
	for range maxChecks {
		r.rooms.checks.enter(t.Context())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.serial(ctx, p.addr); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without room: %v", err)
	}
}
