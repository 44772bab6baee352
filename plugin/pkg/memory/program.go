package memory

import (
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

// Settle says that the process has started, or has read its configuration again. It goes on with less of its program
// than that took, so the system takes back those pages of it that are in memory, two thirds of what a server without
// zones has there; and once more a second after the last call. They stay in the system's cache of files: those that
// are used come back when they are looked at, some microseconds for 64 KiB. Elsewhere than on Linux nothing happens.
func Settle() {
	settling.Lock()
	defer settling.Unlock()
	releaseProgram()
	if settling.timer == nil {
		settling.timer = time.AfterFunc(calm, releaseProgram)
		return
	}
	settling.timer.Reset(calm)
}
