// Package clock is the time by which a resolver judges what it keeps: TTLs, and the times of signatures. It is the
// system's, but where a test has it run elsewhere by a file with an offset (see Variable). Time-outs and round
// trips are not measured by it.
//
// Any number of goroutines may use a Clock. Start at Now.
package clock

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// Variable is the environment variable that names the file with the offset in whole seconds, with a sign if it is
// negative. Without it no file is opened. It is for laboratories: who can write the file can have outdated signatures
// believed.
const Variable = "RECURSE_TEST_CLOCK"

var (
	file   = sync.OnceValue(func() string { return os.Getenv(Variable) })
	offset atomic.Int64 // nanoseconds
	warned atomic.Bool
)

// Moved reports whether the clock is not the system's, and warns of that once.
func Moved() bool {
	if file() == "" {
		return false
	}
	if warned.CompareAndSwap(false, true) {
		log.Warningf("%s is set: TTLs and signatures are judged by a clock that %s moves", Variable, file())
	}
	return true
}

// Now is the time.
func Now() time.Time {
	now := time.Now()
	if file() == "" {
		return now
	}
	return now.Add(Offset())
}

var unreadable sync.Once

// Offset is how far the clock is ahead of the system's. A file that cannot be read leaves it as it is.
func Offset() time.Duration {
	if file() == "" {
		return 0
	}
	b, err := os.ReadFile(file())
	if err == nil {
		var n int64
		if n, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 32); err == nil {
			offset.Store(n * int64(time.Second))
		}
	}
	if err != nil {
		unreadable.Do(func() { log.Warningf("%s: %v", Variable, err) })
	}
	return time.Duration(offset.Load())
}
