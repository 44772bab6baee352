package fetch

import (
	"math"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	most := func(d time.Duration) time.Duration { return d }
	var p Plan
	for i, want := range []time.Duration{250, 250, 500, 1000, 2000, 4000, 8000, 10000, 10000} {
		if got := p.Wait(most); got != want*time.Millisecond || !p.Expires().IsZero() {
			t.Errorf("after %d failures: %s", i, got)
		}
		p.Failed()
	}
	p.Good(build(t, "soa7"), now)
	if got := p.Wait(most); got != 7200*time.Second+refreshJitter || p.Retrying() || p.Expires() != now.Add(1209600*time.Second) {
		t.Errorf("wait %s, expires %s", got, p.Expires())
	}
	p.Failed()
	if got := p.Wait(most); got != 3600*time.Second+retryJitter || !p.Retrying() || p.Expires() != now.Add(1209600*time.Second) {
		t.Errorf("wait %s, expires %s", got, p.Expires())
	}
	p.Good(build(t, "example.org. 300 IN SOA a. b. 1 0 0 0 0"), now)
	if p.Refresh != time.Second || p.Retry != time.Second || p.Expire != time.Second {
		t.Errorf("%+v", p)
	}
	for _, text := range []string{"1 0 0 0 0", "1 7200 3600 600 60", "1 2 1 5 60", "1 600 60 603 60"} {
		p.Good(build(t, "example.org. 300 IN SOA a. b. "+text), now)
		if got := p.Wait(most); got >= p.Expire {
			t.Errorf("SOA %s: the zone expires before the next look, after %s", text, got)
		}
	}
}

// TestPlanAfterFailure: a look that fails is not the last one before the zone expires, whatever the SOA record says.
// An ordinary one is gone by.
func TestPlanAfterFailure(t *testing.T) {
	for _, random := range []func(time.Duration) time.Duration{func(d time.Duration) time.Duration { return d }, func(time.Duration) time.Duration { return 0 }} {
		for _, text := range []string{"7200 3600 600", "3600 3600 3600", "3600 3600 7200", "600 60 603", "1 86400 60", "3600 86400 7200", "86400 7200 86400"} {
			var p Plan
			p.Good(build(t, "example.org. 300 IN SOA a. b. 1 "+text+" 60"), time.Now())
			wait := p.Wait(random)
			p.Failed()
			if wait += p.Wait(random); wait >= p.Expire {
				t.Errorf("SOA %s: the second look is after %s", text, wait)
			}
		}
		var p Plan
		p.Good(build(t, "example.org. 300 IN SOA a. b. 1 7200 3600 1209600 60"), time.Now())
		p.Failed()
		if got := p.Wait(random); got != p.Retry+random(retryJitter) {
			t.Errorf("retry after %s", got)
		}
	}
}

// Limits follow the memory, between a million records and fifty.
func TestLimitsFor(t *testing.T) {
	for memory, want := range map[int64]Limits{
		0:             {Records: 1_000_000, Octets: 256_000_000},
		1 << 30:       {Records: 1 << 20, Octets: 1 << 28},
		8 << 30:       {Records: 8 << 20, Octets: 8 << 28},
		math.MaxInt64: {Records: DefaultRecords, Octets: DefaultOctets},
	} {
		if got := LimitsFor(memory); got != want {
			t.Errorf("%d octets: %+v, want %+v", memory, got, want)
		}
	}
}

// TestNotified: notifications that bring nothing are followed less and less often, up to once a second, and the first one
// after a while at once.
func TestNotified(t *testing.T) {
	var p Plan
	now := time.Unix(1_000_000, 0)
	looks := 0
	for end := now.Add(10 * time.Second); now.Before(end); looks++ {
		now = p.Notified(false, now)
	}
	if looks < 10 || looks > 16 {
		t.Errorf("%d looks in ten seconds", looks)
	}
	if again := p.Notified(true, now); again != now {
		t.Errorf("after news the next one is followed in %v", again.Sub(now))
	}
	if again := p.Notified(false, now.Add(time.Minute)); again != now.Add(time.Minute+firstLull) {
		t.Errorf("after a while: %v", again.Sub(now))
	}
}
