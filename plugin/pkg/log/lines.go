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
// caches cold (measured on a virtual machine). 500 and 200 of them a second took 40 % of the time of a server with
// 20,000 queries a second of which one of a hundred was logged; 40 and 10 take some 8 %.
const (
	enough  = 32 << 10
	maxWait = 1 << 20
	longest = 100 * time.Millisecond
	pause   = 25 * time.Millisecond
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
	timer   *time.Timer // runs, if armed, whether or not something is pending
	armed   bool
}

func init() { gathered.written.L = &gathered.mu }

// Line logs a line, which is text without its end, within a tenth of a second, with others that come meanwhile. It
// is for lines about single queries, and writes at once where each line gets a time or a prefix. text is not kept.
func Line(text []byte) {
	if JSON() {
		record(infoLevel, "", strings.TrimPrefix(string(text), infoLevel))
		return
	}
	if log.Flags() != 0 || log.Prefix() != "" {
		_ = log.Output(2, string(text)) // an output that fails has nowhere to say so
		return
	}
	gather(text, '\n')
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

// arm sees to it that what is pending is written, if nobody is idle before. It is called with the lock. A timer that
// runs already will do, as those who are idle write nearly all: setting it again for each write of theirs, some
// hundred times a second, would have a processor wake up each time, which costs several percent of the time of all.
func (g *lines) arm() {
	switch {
	case g.armed:
		return
	case g.timer == nil:
		g.timer = time.AfterFunc(longest, tick)
	default:
		g.timer.Reset(longest)
	}
	g.armed = true
}

// tick is when the timer has run out.
func tick() {
	g := &gathered
	g.mu.Lock()
	g.armed = false
	if !g.writing {
		drain()
	}
	g.mu.Unlock()
}

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
