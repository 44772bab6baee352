package log

import (
	"log"
	"sync/atomic"
)

// hearer is who hears what others log; nil for nobody.
var hearer atomic.Pointer[func(line []byte)]

// Hear has f called with each line that others write to Go's standard logger, before it goes to the output. It is for
// what nothing else tells than a line of Caddy's. The logger holds its lock: f must not log, nor keep the line.
func Hear(f func(line []byte)) { hearer.Store(&f) }

// Hears reports whether the lines of Go's standard logger come here: somebody may have given it another output.
func Hears() bool {
	switch log.Writer().(type) {
	case *patient, bridge:
		return true
	}
	return false
}

// tellHearer hands on a line of the standard logger.
func tellHearer(line []byte) {
	if f := hearer.Load(); f != nil {
		(*f)(line)
	}
}
