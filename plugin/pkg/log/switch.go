package log

import "sync/atomic"

// d is a switch that any goroutine may turn and read.
type d struct {
	on atomic.Bool
}

// D says whether debug lines are written. It holds for the whole process: the debug plugin sets it while
// the server starts, tests set and clear it.
var D = new(d)

// Set turns debug lines on.
func (d *d) Set() { d.on.Store(true) }

// Clear turns debug lines off.
func (d *d) Clear() { d.on.Store(false) }

// Value tells whether debug lines are written.
func (d *d) Value() bool { return d.on.Load() }
