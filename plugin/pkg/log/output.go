package log

import (
	"io"
	"log"
	"os"
	"time"
)

// Nobody who answers queries waits for an output that takes nothing for a while, such as a pipe whose reader has to
// wait for a disk:
//
//	there is room, or nobody knows ──▶ whoever has lines writes them
//	there is none, or writes are slow ──▶ scribe, a goroutine that has nothing else to do
//
// What waits for it is bounded (maxWait). Beyond, those who log wait, too, as long as the output moves; if it takes
// nothing for patience, lines are lost, and that is told.
const (
	patience  = time.Second
	slowWrite = 10 * time.Millisecond
	slowFor   = 10 * time.Second // the scribe writes, from a slow write on
)

// SetOutput makes out where lines go, those of Go's standard logger, too.
func SetOutput(out *os.File) { log.SetOutput(&patient{out}) }

// patient is an output for which nobody waits. It takes the lines of Go's standard logger.
type patient struct{ *os.File }

// Write gathers a line, and has it written. The standard logger must not be asked for anything here: it holds its lock.
func (p *patient) Write(line []byte) (int, error) {
	tellHearer(line)
	gather(p.File, line)
	Flush()
	return len(line), nil
}

// textOutput is where lines of text go. It is not called with a lock of ours: the standard logger holds its own while
// it writes to a patient.
func textOutput() io.Writer {
	out := log.Writer()
	if p, ok := out.(*patient); ok {
		return p.File
	}
	return out
}

// hasRoom reports whether the output takes n octets at once, as far as that is known. The system is asked anew when
// what it has told before is used up, or old: a reader only makes more room, but another process, such as the one that
// an upgrade replaces, may write there, too. It is called with the lock.
func (g *lines) hasRoom(n int) bool {
	f, ok := g.out.(*os.File)
	now := time.Now()
	switch {
	case !ok:
		return true
	case now.Before(g.slowUntil):
		return false
	case g.roomy != f || g.room < n || now.Sub(g.looked) >= longest:
		g.roomy, g.room, g.looked = f, roomOf(f, n), now
	}
	if g.room < n {
		return false
	}
	g.room -= n + os.Getpagesize() // a write may leave a part of the page before it empty
	return true
}

// scribe writes until nothing is left.
func (g *lines) scribe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writeAll(true)
	g.room = 0 // how much it took is not counted
}

// await waits until a write is over, or has taken patience. It reports false if one had taken that before. It is called
// with the lock, while somebody writes.
func (g *lines) await() bool {
	left := patience - time.Since(g.began)
	if left <= 0 {
		return false
	}
	wake := time.AfterFunc(left, g.written.Broadcast)
	g.written.Wait()
	wake.Stop()
	return true
}
