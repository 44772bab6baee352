package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Go collects garbage when the heap has grown to twice of what was in use, which for a server with little state is
// a few MiB: where handlers make a message a query, that is tens of times a second, and each time all processors
// are stopped and woken. While it comes to that, the heap may grow to roomyHeap.

const (
	// roomyHeap is the octets that the heap of a busy server may grow to, however little of them is in use.
	roomyHeap = 16 << 20
	// A server is busy when garbage is collected more often than each busyGap, until that is less often than each
	// calmGap.
	busyGap, calmGap = 100 * time.Millisecond, 2 * time.Second
	// mostPercent bounds what Go is told.
	mostPercent = 1600
)

// collections follows the collections of garbage.
type collections struct {
	mu      sync.Mutex // held while Go is told something
	told    int        // what somebody else told Go, in percent; guarded by mu
	percent int        // what Go knows; guarded by mu
	last    time.Time  // of the goroutine that looks
}

// heapWatch follows those of the process, once a server listens.
var heapWatch atomic.Pointer[collections]

// GCPercent is how much garbage there may be before Go collects it, in percent of what is in use, as others told Go
// by GOGC or debug.SetGCPercent: not what a busy server with little in use makes of it for the moment. It is
// negative if the size of the heap alone has nothing collected.
func GCPercent() int {
	c := heapWatch.Load()
	if c == nil {
		return gcPercent()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := gcPercent(); now != c.percent {
		return now
	}
	return c.told
}

// Live is how many octets data may have, so that the process grows by so many at most: Go's collector lets garbage grow
// beside them before it begins, by as much as GOGC says, and with its own data and spans that are not full all of that
// takes a tenth more.
func Live(most int64) int64 {
	percent := GCPercent()
	if percent < 0 || percent >= 1000 { // as good as none: another limit holds then
		percent = 100
	}
	return int64(float64(most) / 1.1 * 100 / float64(100+percent))
}

// gcPercent is what Go knows.
func gcPercent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 100
	}
	return int(int64(s[0].Value.Uint64())) // the largest number stands for none
}

// WatchCollections has garbage of a busy server collected so, unless the environment says how it is to be collected.
func WatchCollections() { watchCollections() }

var watchCollections = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	told := debug.SetGCPercent(100)
	debug.SetGCPercent(told)
	if told <= 0 {
		return
	}
	c := &collections{told: told, percent: told, last: time.Now()}
	heapWatch.Store(c)
	afterCollection(c)
})

// afterCollection has c look at the next collection.
func afterCollection(c *collections) {
	runtime.SetFinalizer(&struct{ *collections }{c}, func(*struct{ *collections }) {
		if c.look(time.Now(), heapInUse(), debug.SetGCPercent) {
			afterCollection(c)
		}
	})
}

// heapUse is the octets of the heap that the last collection found in use, and those of all that it goes through.
type heapUse struct{ live, scanned uint64 }

func heapInUse() heapUse {
	s := [3]metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s[:])
	var n [3]uint64
	for i := range s {
		if s[i].Value.Kind() == metrics.KindUint64 {
			n[i] = s[i].Value.Uint64()
		}
	}
	return heapUse{n[0], n[0] + n[1] + n[2]}
}

// look is called when garbage was collected. It reports false if somebody else has told Go what to do since, which
// holds.
func (c *collections) look(now time.Time, use heapUse, set func(percent int) int) (goOn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gap := now.Sub(c.last)
	c.last = now
	raised := c.percent != c.told
	want := c.told
	if gap < busyGap || raised && gap < calmGap {
		want = max(want, use.percent())
	}
	if want != c.told && raised && want > c.percent*3/4 && want < c.percent*5/4 || want == c.percent {
		return true // near enough: all is stopped to change it
	}
	if known := set(want); known != c.percent {
		set(known)
		c.told, c.percent = known, known
		return false
	}
	c.percent = want
	return true
}

// percent makes the heap grow to roomyHeap.
func (u heapUse) percent() int {
	if u.live >= roomyHeap || u.scanned == 0 {
		return 0
	}
	return int(min(mostPercent, (roomyHeap-u.live)*100/u.scanned))
}
