package memory

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

func TestCollections(t *testing.T) {
	const mib = 1 << 20
	small, middle, large := heapUse{2 * mib, 2 * mib}, heapUse{6 * mib, 6 * mib}, heapUse{20 * mib, 20 * mib}
	type step struct {
		gap  time.Duration
		use  heapUse
		want int // percent that is known then
	}
	const often, nowAndThen, seldom = busyGap / 2, calmGap / 2, 2 * calmGap
	for name, steps := range map[string][]step{
		"calm":             {{nowAndThen, small, 100}, {seldom, small, 100}},
		"busy":             {{often, small, 700}, {nowAndThen, small, 700}, {often, small, 700}, {seldom, small, 100}, {nowAndThen, small, 100}},
		"next to nothing":  {{often, heapUse{mib / 2, mib / 2}, mostPercent}},
		"unknown":          {{often, heapUse{}, 100}},
		"grows":            {{often, small, 700}, {often, middle, 166}, {often, large, 100}},
		"nearly the same":  {{often, small, 700}, {often, heapUse{2*mib + mib/5, 2*mib + mib/5}, 700}},
		"large":            {{often, large, 100}},
		"stacks count":     {{often, heapUse{2 * mib, 4 * mib}, 350}},
		"large and seldom": {{seldom, large, 100}},
	} {
		now, known := time.Unix(1e9, 0), 100
		c := &collections{told: 100, percent: 100, last: now}
		set := func(percent int) (was int) {
			was, known = known, percent
			return was
		}
		for i, s := range steps {
			now = now.Add(s.gap)
			if !c.look(now, s.use, set) || known != s.want {
				t.Errorf("%s, step %d: %d %%, want %d", name, i, known, s.want)
			}
		}
	}
}

// What somebody else tells Go holds.
func TestCollectionsOfOthers(t *testing.T) {
	now, known := time.Unix(1e9, 0), 100
	c := &collections{told: 100, percent: 100, last: now}
	set := func(percent int) (was int) {
		was, known = known, percent
		return was
	}
	known = 50
	if c.look(now.Add(busyGap/2), heapUse{1 << 20, 1 << 20}, set) || known != 50 || c.told != 50 || c.percent != 50 {
		t.Errorf("%d %%, told %d, known %d", known, c.told, c.percent)
	}
}

// ownProcess is the variable of the environment that makes TestCollectionsOfProcess the only test of its process.
const ownProcess = "COLLECTIONS_OWN_PROCESS"

// A process that makes much garbage has a roomy heap, until it makes less. What other tests leave in the heap would
// be in the way.
func TestCollectionsOfProcess(t *testing.T) {
	if os.Getenv(ownProcess) == "" {
		own := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCollectionsOfProcess$")
		own.Env = append(os.Environ(), ownProcess+"=yes", "GOGC=100")
		if out, err := own.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	runtime.GC()
	if use := heapInUse(); use.live == 0 || use.scanned <= use.live {
		t.Fatalf("in use: %+v", use)
	}
	c := &collections{told: 100, percent: 100, last: time.Now()}
	heapWatch.Store(c)
	afterCollection(c)
	litter := func() {
		for range 4 << 10 {
			rubbish = make([]byte, 16<<10)
		}
	}
	eventually.Holds(t, "the heap is roomy", func() bool {
		litter()
		return gcPercent() > 100
	})
	if got := GCPercent(); got != 100 {
		t.Errorf("others told %d %%, want 100", got)
	}
	eventually.Holds(t, "it is not", func() bool {
		time.Sleep(calmGap + busyGap)
		runtime.GC()
		time.Sleep(busyGap)
		return gcPercent() == 100
	})
	debug.SetGCPercent(50)
	if got := GCPercent(); got != 50 {
		t.Errorf("others told %d %%, want 50", got)
	}
	eventually.Holds(t, "it is followed no more", func() bool {
		litter()
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.told == 50
	})
	if got := gcPercent(); got != 50 {
		t.Errorf("Go knows %d %%, want 50", got)
	}
}

var rubbish []byte
