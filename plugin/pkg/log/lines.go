package log

import (
	"log"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What is gathered before it is written, and how much may wait for an output that is slow, in octets; how
// long a line may wait, and how often those who are idle write.
//
// A write now and then takes 70 us of a processor, and a timer that runs out 110 us, as both find it asleep and its
// caches cold (measured on a virtual machine). Each write wakes the runtime's monitor, too, which then sleeps some
// five times for 20 us before it rests again: with 20,000 queries a second and 60 writes that was 4 % of all time. At
// this pace there are some 35 writes a second now.
const (
	enough  = 56 << 10 // less than a pipe holds: a write does not wait for its reader, if that one is there
	maxWait = 1 << 20
	longest = 100 * time.Millisecond
	pause   = 90 * time.Millisecond
)

// gathered has the lines of Line that are not written yet.
var gathered lines

// lines are gathered until somebody writes them. Whoever finds no writer at work becomes it, and takes along what
// comes meanwhile.
type lines struct {
	pending atomic.Bool // there may be something in text

	mu      sync.Mutex
	written sync.Cond // a write is over
	text    []byte
	spare   []byte
	writing bool
	last    time.Time   // when a write was over
	timer   *time.Timer // writes what nobody else has written
}

func init() { gathered.written.L = &gathered.mu }

// Line logs a line, which is text without its end, within a tenth of a second, with others that come meanwhile. It
// is for lines about single queries, and writes at once where each line gets a time or a prefix. text is not kept.
func Line(text []byte) {
	if JSON() {
		record(infoLevel, "", strings.TrimPrefix(string(text), infoLevel))
		return
	}
	if !Gathers() {
		_ = log.Output(2, string(text)) // an output that fails has nowhere to say so
		return
	}
	gather(text, '\n')
}

// Gathers reports whether lines are text that stands as it is, without a time or a prefix for each: who has several
// at once may then hand them to Lines.
func Gathers() bool { return !JSON() && log.Flags() == 0 && log.Prefix() == "" }

// Lines is Line for several, each with its end, if Gathers is true. It takes the lock once for all of them.
func Lines(text []byte) {
	if len(text) > 0 {
		gather(text)
	}
}

// gather adds a line, which ends with end.
func gather(text []byte, end ...byte) {
	g := &gathered
	g.mu.Lock()
	for g.writing && len(g.text) > maxWait {
		g.written.Wait()
	}
	g.text = append(g.text, text...)
	g.text = append(g.text, end...)
	switch {
	case g.writing: // he takes it along
	case len(g.text) >= enough:
		drain()
	case !g.pending.Load():
		g.pending.Store(true)
		g.arm()
	}
	g.mu.Unlock()
}

// arm sees to it that what is pending is written, if nobody is idle before. It is called with the lock. Under load the
// timer is put off with each write and does not run out; one that has run out, or was stopped, would have another
// processor wake up for it, so it is not stopped when others have written. The runtime's monitor still wakes up when
// the timer would have run out before it was put off.
func (g *lines) arm() {
	if g.timer == nil {
		g.timer = time.AfterFunc(longest, tick)
		return
	}
	g.timer.Reset(longest)
}

// tick is when the timer has run out.
func tick() { Flush() }

// Idle is Flush for those who have nothing to do for the moment: it does not write if that has been done just now.
func Idle() {
	g := &gathered
	if !g.pending.Load() {
		return
	}
	g.mu.Lock()
	if !g.writing && time.Since(g.last) > pause {
		drain()
	}
	g.mu.Unlock()
}

// Flush writes what was gathered, unless that is being done.
func Flush() {
	g := &gathered
	if !g.pending.Load() {
		return
	}
	g.mu.Lock()
	if !g.writing {
		drain()
	}
	g.mu.Unlock()
}

// Sync writes what was gathered and waits until it is written.
func Sync() {
	g := &gathered
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.writing {
		g.written.Wait()
	}
	drain()
}

// drain writes until nothing is left. It is called with the lock, and gives it up while it writes.
func drain() {
	g := &gathered
	g.writing = true
	for len(g.text) > 0 {
		out := g.text
		g.text = g.spare[:0]
		g.mu.Unlock()
		_, _ = output().Write(out)
		g.mu.Lock()
		g.spare = out
		g.written.Broadcast()
	}
	g.writing = false
	g.pending.Store(false)
	g.last = time.Now()
	g.written.Broadcast()
}
