package log

import (
	"bytes"
	"io"
	"log"
	"os"
	"slices"
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
	out     io.Writer // for text, and what comes
	written sync.Cond // a write is over
	text    []byte
	spare   []byte
	writing bool
	began   time.Time   // the write that is under way
	last    time.Time   // when a write was over
	timer   *time.Timer // writes what nobody else has written

	roomy     *os.File  // takes room octets at once, or more
	room      int       // see hasRoom
	looked    time.Time // when that was asked for
	slowUntil time.Time // the output may be slow, see output.go
	lost      int       // lines, as it took none
	failed    int       // lines that it took with an error, or took a part of
	torn      bool      // the last line that it took has no end
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
	gather(textOutput(), text, '\n')
}

// Gathers reports whether lines are text that stands as it is, without a time or a prefix for each: who has several
// at once may then hand them to Lines.
func Gathers() bool { return !JSON() && log.Flags() == 0 && log.Prefix() == "" }

// Lines is Line for several, each with its end, if Gathers is true. It takes the lock once for all of them.
func Lines(text []byte) {
	if len(text) > 0 {
		gather(textOutput(), text)
	}
}

var newline = []byte{'\n'}

// gather adds lines for out, of which the last one ends with end, which is a newline or nothing.
func gather(out io.Writer, text []byte, end ...byte) {
	g := &gathered
	g.mu.Lock()
	for g.writing && len(g.text) > maxWait {
		if !g.await() {
			g.lost += bytes.Count(text, newline) + len(end)
			g.mu.Unlock()
			return
		}
	}
	g.out = out
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

// Sync writes what was gathered and waits until it is written. It gives up on an output that takes nothing.
func Sync() {
	g := &gathered
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.writing || len(g.text) > 0 {
		if !g.writing {
			drain()
		} else if !g.await() {
			return
		}
	}
}

// drain writes until nothing is left, or has somebody do that. It is called with the lock, and gives it up while it
// writes.
func drain() { gathered.writeAll(false) }

// writeAll writes until nothing is left. Who may not wait, as he has other things to do, leaves it to the scribe when
// that is to be feared.
func (g *lines) writeAll(mayWait bool) {
	g.writing = true
	for len(g.text) > 0 {
		if g.began = time.Now(); !mayWait && !g.hasRoom(len(g.text)) {
			go g.scribe()
			return
		}
		out, to := g.text, g.out
		g.text = g.spare[:0]
		g.mu.Unlock()
		ends := 0   // what ends a line that was torn
		if g.torn { // only who writes changes it
			out, ends = slices.Insert(out, 0, '\n'), 1
		}
		n, err := to.Write(out)
		g.mu.Lock()
		g.spare = out
		if err == nil {
			g.tookAll()
		} else {
			g.failed += bytes.Count(out[max(n, ends):], newline)
			g.torn = n > 0 && out[n-1] != '\n' || n == 0 && g.torn
		}
		g.wrote(time.Now())
		g.written.Broadcast()
	}
	g.writing = false
	g.pending.Store(false)
	g.written.Broadcast()
}

// tookAll notes that lines were written. If others were not, as on a disk that was full, that is told now.
func (g *lines) tookAll() {
	g.torn = false
	if n := g.failed; n > 0 {
		g.failed = 0
		go Warningf("Lines of the log were lost, as they could not be written: %d", n)
	}
}

// wrote notes the end of a write.
func (g *lines) wrote(now time.Time) {
	g.last = now
	if now.Sub(g.began) > slowWrite {
		g.slowUntil = now.Add(slowFor)
	}
	if n := g.lost; n > 0 {
		g.lost = 0
		go Warningf("Lines of the log were lost, as nobody took them for more than %s: %d", patience, n)
	}
}
