package store

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

const now Time = 1e18

func entry(rank Rank, ttl uint32, rdata string) *Entry {
	return &Entry{Rank: rank, Set: rrset.New("\x01a\x00", 1, ttl, rdata), TTL: ttl, Expires: now.After(ttl)}
}

// A lower rank never replaces a higher one that lives (RFC 2181 §5.4.1).
func TestRanks(t *testing.T) {
	s := New(8<<20, 1000)
	r := &s.RRsets
	for _, step := range []struct {
		rank Rank
		data string
		at   Time
		want string
	}{
		{AuthorityData, "aaaa", now, "aaaa"}, {AnswerData, "bbbb", now, "bbbb"}, {AuthorityData, "cccc", now, "bbbb"},
		{AnswerData, "dddd", now, "dddd"}, {SecureData, "eeee", now, "eeee"}, {AnswerData, "ffff", now, "eeee"},
		{AuthorityData, "gggg", now.After(61), ""},
	} {
		e := entry(step.rank, 60, step.data)
		r.Put("\x01a\x00", 1, e, step.at)
		got := ""
		if g := r.Get("\x01a\x00", 1, step.at); g != nil {
			got = g.Set.First()
		}
		if got != step.want {
			t.Errorf("rank %d, %q: kept %q, want %q", step.rank, step.data, got, step.want)
		}
	}
}

// What a server says of type 0, which no record has, is not said of all types.
func TestNothingIsOfTypeZero(t *testing.T) {
	s := New(8<<20, 1000)
	for _, kind := range []Kind{NoData, Positive} {
		e := entry(AnswerData, 60, "aaaa")
		e.Kind = kind
		if s.RRsets.Put("\x01a\x00", 0, e, now) || s.RRsets.Get("\x01a\x00", 1, now) != nil || s.RRsets.Denied("\x01a\x00", now) != nil {
			t.Errorf("an entry of kind %d is kept", kind)
		}
	}
}

// Of a question that was asked again the later answer holds, whatever it is.
func TestDeniedLater(t *testing.T) {
	s := New(8<<20, 1000)
	nodata := &Entry{Kind: NoData, Rank: AnswerData, TTL: 60, Expires: now.After(60)}
	nx := &Entry{Kind: NXDomain, Rank: AnswerData, TTL: 60, Expires: now.After(60)}
	for i, e := range []*Entry{nodata, nx, nodata, entry(AnswerData, 60, "aaaa"), nx, entry(SecureData, 60, "bbbb")} {
		s.RRsets.Put("\x01a\x00", 1, e, now)
		if got := s.RRsets.Get("\x01a\x00", 1, now); got != e {
			t.Errorf("answer %d: %+v holds, not %+v", i, got, e)
		}
	}
	if s.RRsets.Put("\x01a\x00", 1, nx, now); s.RRsets.Positive("\x01a\x00", 1, now) == nil {
		t.Error("what was worth more is gone")
	}
}

// NXDOMAIN is said of all types, until one is there.
func TestDenied(t *testing.T) {
	s := New(8<<20, 1000)
	s.RRsets.Put("\x01a\x00", 28, &Entry{Kind: NXDomain, Rank: AnswerData, TTL: 60, Expires: now.After(60)}, now)
	if e := s.RRsets.Get("\x01a\x00", 1, now); e == nil || e.Kind != NXDomain {
		t.Fatalf("%v", e)
	}
	s.RRsets.Put("\x01a\x00", 1, entry(AnswerData, 60, "aaaa"), now)
	if s.RRsets.Denied("\x01a\x00", now) != nil {
		t.Error("a name with an address does not exist")
	}
	if n := s.RRsets.Forget("\x00", true); n != 1 {
		t.Errorf("%d entries below the root", n)
	}
}

// A delegation that is told again lives no longer.
func TestDelegations(t *testing.T) {
	s := New(8<<20, 1000)
	d := &s.Delegations
	d.Put(&Delegation{Zone: "\x01a\x00", Expires: now.After(100)}, now)
	d.Put(&Delegation{Zone: "\x01a\x00", Expires: now.After(1000), Hosts: []Host{{Name: "x"}}}, now)
	if g := d.Closest("\x01b\x01a\x00", now); g == nil || g.Expires != now.After(100) || len(g.Hosts) != 1 {
		t.Errorf("%+v", g)
	}
	if g := d.Closest("\x01b\x01a\x00", now.After(101)); g != nil {
		t.Errorf("it outlives its end: %+v", g)
	}
}

// The stores stay within their octets, whatever comes, and by the octets of the process, too.
func TestBounds(t *testing.T) {
	const limit = 8 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := New(limit, 1000)
	for i := range 200000 {
		name := fmt.Sprintf("\x07n%06d\x00", i)
		s.RRsets.Put(name, 1, &Entry{Rank: AnswerData, Set: rrset.New(name, 1, 60, "aaaa"), TTL: 60, Expires: now.After(60)}, now)
		s.Delegations.Put(&Delegation{Zone: name, Expires: now.After(60), Hosts: []Host{{Name: "x"}}}, now)
		s.Failures.Note(name, 1, 22, "text", now)
		s.Servers.Get(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 53), func() any { return nil })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	_, a := s.RRsets.Total()
	_, b := s.Delegations.Total()
	_, c := s.Failures.Total()
	if a+b+c > limit || a < limit/2 {
		t.Errorf("%d + %d + %d octets of %d", a, b, c, limit)
	}
	if n := s.Servers.Total(); n > 1000 || n < 500 {
		t.Errorf("%d servers of 1000", n)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*limit {
		t.Errorf("the heap has grown by %d octets", grown)
	}
	runtime.KeepAlive(s)
}

func TestFailures(t *testing.T) {
	s := New(8<<20, 1000)
	at, want := now, 5*Second
	for range 10 {
		s.Failures.Note("a", 1, 22, "x", at)
		if _, ok := s.Failures.Get("a", 1, at+want-1); !ok {
			t.Fatalf("not kept for %v", time.Duration(want))
		}
		if _, ok := s.Failures.Get("a", 1, at+want); ok {
			t.Fatalf("kept for more than %v", time.Duration(want))
		}
		at += want
		want = min(2*want, 300*Second)
	}
}

// Many who have asked at one time fail at one time, which is one failure.
func TestFailuresAtOneTime(t *testing.T) {
	s := New(8<<20, 1000)
	for i := range Time(50) {
		s.Failures.Note("a", 1, 22, "x", now+i)
	}
	if f, ok := s.Failures.Get("a", 1, now+5*Second); !ok || f.Times != 1 || f.Until != now+49+5*Second {
		t.Errorf("%d times, for %v", f.Times, time.Duration(f.Until-now))
	}
	later := now + 6*Second
	s.Failures.Note("a", 1, 22, "x", later)
	if f, ok := s.Failures.Get("a", 1, later); !ok || f.Times != 2 || f.Until != later+10*Second {
		t.Errorf("the next one: %d times, for %v", f.Times, time.Duration(f.Until-later))
	}
}

// Many queries that are lost in one moment neither put a server off nor have it waited for longer than one does.
func TestServerMomentOfLoss(t *testing.T) {
	s := New(8<<20, 1000)
	v := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
	v.Replied(20*time.Millisecond, true)
	at := now
	v.Asked(at)
	for range 1000 {
		v.Silent(at, 60*time.Millisecond)
	}
	if v.IsDead() || v.Dead(at) || v.Dead(at+10*Second) || v.Wait() != 120*time.Millisecond {
		t.Errorf("after a moment of loss: dead %v, wait %v", v.IsDead(), v.Wait())
	}
	v.Silent(at+Second, 120*time.Millisecond)
	if !v.IsDead() || !v.Dead(at) || v.Wait() != 240*time.Millisecond {
		t.Errorf("after a second: dead %v, wait %v", v.IsDead(), v.Wait())
	}
	v.Replied(20*time.Millisecond, true)
	for i := range 4 { // the clock is set back by an hour
		v.Silent(at+Time(i-3600)*Second, 3*time.Second)
	}
	if !v.IsDead() {
		t.Error("silent for three seconds it is not dead")
	}
}

// TestServerOptions: who is silent to options, and was never known to take any, is asked without, and stays so if that helps.
func TestServerOptions(t *testing.T) {
	s := New(8<<20, 1000)
	firewalled := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
	takes := s.Servers.Get(netip.MustParseAddrPort("192.0.2.2:53"), func() any { return nil })
	takes.TookOptions(true, now+Second)
	takes.Replied(time.Millisecond, true)
	for _, v := range []*Server{firewalled, takes} {
		if !v.Options(now) || v.Unheard() != (v == firewalled) {
			t.Errorf("%v: %+v", v.Addr, v.Known(now))
		}
		v.Silent(now, v.Wait())
	}
	if firewalled.Options(now) || !takes.Options(now) {
		t.Errorf("after silence: %v and %v", firewalled.Options(now), takes.Options(now))
	}
	for _, v := range []*Server{firewalled, takes} {
		v.TookOptions(false, now+Second)
		v.Replied(time.Millisecond, true)
	}
	if firewalled.Options(now) || !firewalled.Known(now).Bare || !takes.Options(now) || firewalled.Unheard() {
		t.Errorf("after a reply without: %+v and %+v", firewalled.Known(now), takes.Known(now))
	}
	if !firewalled.Options(now + Second) {
		t.Error("for ever without")
	}
}

// One that was silent for a minute is put off for one.
func TestServerOff(t *testing.T) {
	s := New(8<<20, 1000)
	v := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
	at := now
	for range 100 {
		v.Silent(at, v.Wait())
	}
	v.Asked(at)
	v.Silent(at+Second, v.Wait())
	if at += Second; !v.Dead(at-1) || v.Dead(at) {
		t.Error("after a second of loss it is not probed each second")
	}
	for range 62 {
		v.Asked(at)
		v.Silent(at, v.Wait())
		at += Second
	}
	if at -= Second; !v.Dead(at+59*Second) || v.Dead(at+60*Second) {
		t.Error("silent for a minute it is not put off for one")
	}
}

func TestServer(t *testing.T) {
	s := New(8<<20, 1000)
	v := s.Servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return 7 })
	if v.Peer != 7 || v.Wait() != 400*time.Millisecond {
		t.Errorf("%v %v", v.Peer, v.Wait())
	}
	at := now
	for i := range 4 {
		if v.IsDead() {
			t.Fatalf("dead after %d time-outs", i)
		}
		v.Asked(at)
		v.Silent(at, v.Wait())
		at += 400 * Second / 1000
	}
	if !v.IsDead() || !v.Dead(at) || v.Dead(at+Second) {
		t.Error("four time-outs: dead, and probed each second")
	}
	v.Replied(20*time.Millisecond, true)
	if v.IsDead() || v.Wait() != 60*time.Millisecond || !v.EDNS(at) || v.RefusesEDNS(at+Second) {
		t.Errorf("after a reply: wait %v", v.Wait())
	}
	v.SetLame("z", true, at+Second)
	if lame, soft := v.Lame("z", at); !lame || !soft {
		t.Error("lame")
	}
	if lame, _ := v.Lame("z", at+Second); lame {
		t.Error("lame for too long")
	}
}

// What goroutines store and forget at one time is counted rightly; the race detector looks on, too.
func TestConcurrently(t *testing.T) {
	s := New(4<<20, 1000)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 5000 {
				name := fmt.Sprintf("n%d", (i*7+g)%3000)
				s.RRsets.Put(name, 1, entry(AnswerData, 60, "aaaa"), now)
				s.RRsets.Get(name, 1, now)
				if i%500 == 0 {
					s.RRsets.Forget(name, false)
					s.RRsets.Total()
				}
			}
		})
	}
	all.Wait()
	for i := range 3000 {
		s.RRsets.Forget(fmt.Sprintf("n%d", i), false)
	}
	if n, octets := s.RRsets.Total(); n != 0 || octets != 0 {
		t.Errorf("when all is forgotten, %d entries of %d octets are left", n, octets)
	}
}

// What could not be asked is kept for a second, however often that happens, and is no failure of the servers: neither
// does it prolong one, nor end it.
func TestUnsentFailures(t *testing.T) {
	s := New(8<<20, 1000)
	until := func(want Time, times int) {
		t.Helper()
		if f, ok := s.Failures.Get("a", 1, now); !ok || f.Until != want || f.Times != times {
			t.Errorf("kept for %v, %d times; want %v, %d times", time.Duration(f.Until-now), f.Times, time.Duration(want-now), times)
		}
	}
	for i := range Time(10) {
		s.Failures.Unsent("a", 1, 23, "x", now+i*Second)
		until(now+(i+1)*Second, 0)
	}
	at := now + 10*Second
	s.Failures.Note("a", 1, 22, "x", at-1)
	until(at-1+5*Second, 1)
	s.Failures.Unsent("a", 1, 23, "x", at)
	until(at-1+5*Second, 1)
	s.Failures.Unsent("a", 1, 23, "x", at+5*Second)
	until(at+6*Second, 1)
	s.Failures.Note("a", 1, 22, "x", at+6*Second)
	until(at+16*Second, 2)
}
