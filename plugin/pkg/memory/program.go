package memory

import (
	"math"
	"sync"
	"time"
)

// calm is how long after a start the pages of the program are given back once more: what a start leaves to others is
// over by then.
const calm = time.Second

var settling struct {
	sync.Mutex
	timer *time.Timer
}

// Trim has the system take back what is in memory of the program. It stays in the system's cache of files: what is used
// comes back when it is looked at, some microseconds for 64 KiB. Where the memory of the process is limited, what the
// system has to read from the file again, it reads page by page. Elsewhere than on Linux nothing happens.
//
// It pays before much memory is needed by a start, as what the program did before is over then; see Settle.
func Trim() { releaseProgram(Limit() < math.MaxInt64) }

// Settle says that the process has started, or has read its configuration again. It goes on with less of its program
// than that took, two thirds of it in a server without zones, so there is a Trim now, and one a second after the last
// call.
func Settle() {
	settling.Lock()
	defer settling.Unlock()
	Trim()
	if settling.timer == nil {
		settling.timer = time.AfterFunc(calm, Trim)
		return
	}
	settling.timer.Reset(calm)
}
