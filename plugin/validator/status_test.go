package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What is flushed is judged anew: names that were bogus, and with a zone its keys.
func TestFlush(t *testing.T) {
	for _, c := range []struct {
		m          status.Match
		keys, fail bool // stay
	}{
		{status.Match{Name: []byte("\x00"), Below: true}, false, false}, {status.Match{Name: []byte("\x07example\x00"), Below: true}, false, false},
		{status.Match{Name: []byte("\x07example\x00")}, false, true}, {status.Match{Name: []byte("\x03bad\x07example\x00")}, true, false},
		{status.Match{Name: []byte("\x03bad\x07example\x00"), Type: dns.TypeTXT}, true, true}, {status.Match{Name: []byte("\x03net\x00"), Below: true}, true, true},
	} {
		v, _ := lab(t, "")
		if m, _, err := ask(t, v, "bad.example.", do); err == nil {
			t.Fatalf("%v", m)
		}
		v.CacheFlush(c.m)
		if keys := v.memory.Node(rrset.MustName("example."), time.Now()) != nil; keys != c.keys {
			t.Errorf("%+v: keys are kept: %v", c.m, keys)
		}
		if _, fail := v.known(questionOf(t, "bad.example.")); fail != c.fail {
			t.Errorf("%+v: the failure is kept: %v", c.m, fail)
		}
	}
}

// answers is a plugin of the block that keeps answers.
type answers struct {
	plugin.Handler
	mu      sync.Mutex
	flushed []string
}

func (a *answers) took() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.flushed, " ")
}

func (a *answers) CacheFlush(m status.Match) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text := rrset.Text(string(m.Name)); m.Below && m.Type == 0 {
		a.flushed = append(a.flushed, text)
	}
	return 0
}

// When a negative trust anchor begins or ends, what caches of the block keep below it is not what clients are to get any
// more (RFC 7646 §2): whoever began or ended it, and if nobody has asked anything since a reload, too.
func TestNegativesFlush(t *testing.T) {
	v, src := lab(t, "nta_file "+filepath.Join(t.TempDir(), "ntas"))
	cache := &answers{}
	v.block = func() []plugin.Handler { return []plugin.Handler{cache, v} }
	if err := v.keeper.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.keeper.stop)
	bad, now := rrset.MustName("bad.example."), clock.Now()
	flushes := func(what, want string) {
		t.Helper()
		if got := strings.Join(cache.flushed, " "); got != want {
			t.Errorf("%s: flushed %q, want %q", what, got, want)
		}
		cache.flushed = nil
	}
	add := func(d time.Duration) {
		t.Helper()
		if err := v.AddNegative([]byte(bad), d); err != nil {
			t.Fatal(err)
		}
	}
	add(time.Minute)
	flushes("added", "bad.example.")
	add(time.Hour)
	flushes("made longer", "")
	if _, err := v.DropNegative([]byte(bad)); err != nil {
		t.Fatal(err)
	}
	flushes("dropped", "bad.example.")
	add(time.Minute)
	flushes("added again", "bad.example.")
	v.keeper.look(t.Context(), now.Add(2*time.Minute))
	flushes("over", "bad.example.")
	if err := os.WriteFile(v.ntaFile, []byte(fmt.Sprintf("www.example. %d\n", now.Add(time.Hour).Unix())), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(v.ntaFile, now, now.Add(-2*time.Second)); err != nil { // nobody is writing it
		t.Fatal(err)
	}
	v.keeper.look(t.Context(), now)
	flushes("written into the file", "www.example.")
	before := src.asked
	v.keeper.endMended(t.Context(), now.Add(mended+time.Minute)) // it asks for the name's SOA record, which there is none of
	flushes("not mended", "")
	if src.asked == before {
		t.Error("it was not looked whether the name validates again")
	}
}

// What is kept below a negative trust anchor is forgotten when that ends, and not at the next look; the gauge tells of it
// at once.
func TestNegativeEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logtest.Capture(t)
		v, _ := lab(t, "nta bad.example 1h")
		cache := &answers{}
		v.block = func() []plugin.Handler { return []plugin.Handler{cache, v} }
		if err := v.keeper.start(); err != nil {
			t.Fatal(err)
		}
		defer v.keeper.stop()
		gauge := func(when string, want float64) {
			t.Helper()
			synctest.Wait()
			if n := testutil.ToFloat64(negativeNow.WithLabelValues(v.counts.server)); n != want {
				t.Errorf("%s: the gauge is %v, want %v", when, n, want)
			}
		}
		gauge("at the start", 1)
		if err := v.AddNegative([]byte(rrset.MustName("www.example.")), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		gauge("added", 2)
		time.Sleep(4 * time.Second)
		if synctest.Wait(); cache.took() != "www.example." {
			t.Errorf("flushed %q before the end, want what there was at the beginning", cache.took())
		}
		time.Sleep(1001 * time.Millisecond)
		gauge("ended", 1)
		if got := cache.took(); got != "www.example. www.example." {
			t.Errorf("flushed %q at the beginning and at the end", got)
		}
	})
}

// A negative trust anchor can be added and taken away while the server runs.
func TestStatus(t *testing.T) {
	v, _ := lab(t, "")
	keys, negative := v.AnchorStatus()
	if len(keys) != 1 || keys[0].Zone != "example." || keys[0].State != "configured" || keys[0].Tag == 0 || len(negative) != 0 {
		t.Errorf("%+v %+v", keys, negative)
	}
	name := []byte(rrset.MustName("bad.example."))
	if m, _, err := ask(t, v, "bad.example.", do); err == nil {
		t.Errorf("before: %v", m)
	}
	for _, d := range []time.Duration{0, longestNTA + 1} {
		if err := v.AddNegative(name, d); err == nil {
			t.Errorf("%v is taken", d)
		}
	}
	if err := v.AddNegative(name, time.Hour); err != nil {
		t.Fatal(err)
	}
	if m, _, err := ask(t, v, "bad.example.", do); err != nil || !explains(m, 33) {
		t.Errorf("added: %v %v", m, err)
	}
	if _, negative = v.AnchorStatus(); len(negative) != 1 || negative[0].Name != "bad.example." {
		t.Errorf("%+v", negative)
	}
	for _, want := range []bool{true, false} {
		if ok, err := v.DropNegative(name); ok != want || err != nil {
			t.Errorf("dropped %v %v, want %v", ok, err, want)
		}
	}
	if m, _, err := ask(t, v, "bad.example.", do); err == nil {
		t.Errorf("dropped: %v", m)
	}
}

// Bogus replies have ten lines a second in the log, whatever there are.
func TestFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := defaults()
		for range 3 {
			n := 0
			for range 100 {
				if s.mayLog() {
					n++
				}
			}
			if n != 10 {
				t.Errorf("%d lines in a second", n)
			}
			time.Sleep(time.Second)
		}
	})
}
