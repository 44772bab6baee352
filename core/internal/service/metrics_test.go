package service

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Each reason that is counted somewhere is known from the start, and stands in the README.
func TestLimitReasons(t *testing.T) {
	readme, err := os.ReadFile("../../../plugin/limits/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`(?:Limited\(|reason (?::?=) )"([a-z_]+)"`)
	counted := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllSubmatch(text, -1) {
			counted[string(m[1])] = true
		}
	}
	for reason := range counted {
		if !slices.Contains(limitReasons, reason) {
			t.Errorf("%s is not counted from 0", reason)
		}
	}
	for _, reason := range limitReasons {
		if !counted[reason] {
			t.Errorf("nobody counts %s", reason)
		}
		if !strings.Contains(string(readme), "`"+reason+"`") {
			t.Errorf("the README of limits does not know %s", reason)
		}
	}
}

// Counters are there from the start, and each is counted for its server.
func TestCountedFromZero(t *testing.T) {
	s, other := &Service{Label: "dns://:1" + t.Name()}, &Service{Label: "dns://:2" + t.Name()}
	series := func() int {
		return testutil.CollectAndCount(limitsReached) + testutil.CollectAndCount(vars.QueriesDropped)
	}
	before := series()
	CountFromZero(s.Label)
	CountFromZero(other.Label)
	if n := series() - before; n != 2*(len(limitReasons)+1) && n != 0 { // 0 if the test runs again
		t.Errorf("%d series more", n)
	}
	count := func(s *Service) [2]float64 {
		return [2]float64{testutil.ToFloat64(Limited(s.Label, "waiting")), testutil.ToFloat64(vars.QueriesDropped.WithLabelValues(s.Label, "waiting"))}
	}
	was, others := count(s), count(other)
	s.Limited("waiting")
	if got := count(s); got != [2]float64{was[0] + 1, was[1]} {
		t.Errorf("after Limited: %v of %v", got, was)
	}
	s.Dropped()
	if got := count(s); got != [2]float64{was[0] + 1, was[1] + 1} {
		t.Errorf("after Dropped: %v of %v", got, was)
	}
	if got := count(other); got != others {
		t.Errorf("another server's: %v", got)
	}
}

func TestTooLong(t *testing.T) {
	for _, tc := range []struct {
		limit, n int
		want     bool
	}{{0, 65535, false}, {512, 512, false}, {512, 513, true}, {512, 0, false}} {
		if got := (&Limits{QueryBytes: tc.limit}).TooLong(tc.n); got != tc.want {
			t.Errorf("%d of %d: %t", tc.n, tc.limit, got)
		}
	}
}

// The clock goes on, and times that are known otherwise lie where they are on it.
func TestClock(t *testing.T) {
	before := Now()
	at := At(time.Now())
	if after := Now(); before > at || at > after || before < 0 {
		t.Errorf("%d, %d, %d", before, at, after)
	}
	if got := At(started.Add(time.Second)); got != int64(time.Second) {
		t.Errorf("a second is %d", got)
	}
}
