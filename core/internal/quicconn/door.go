package quicconn

import "sync"

// door is where clients come in that begin to connect. The library's one goroutine that hears their first words goes
// through it by pass; when their arrival is noted, it calls in. A client with a token of ours, whose address is known,
// comes in beside it.
type door struct {
	mu       sync.Mutex
	moved    sync.Cond // held or closed has changed
	held     bool      // who comes waits before it
	closed   bool      // nobody comes in any more
	entering bool      // somebody went through, whose arrival is not noted yet
}

func newDoor() *door {
	d := new(door)
	d.moved.L = &d.mu
	return d
}

// pass reports whether a client may come in; it waits while the door is held.
func (d *door) pass() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.held && !d.closed {
		d.moved.Wait()
	}
	d.entering = !d.closed
	return !d.closed
}

// in notes that the client who went through has arrived.
func (d *door) in() {
	d.mu.Lock()
	d.entering = false
	d.mu.Unlock()
}

// hold has whoever comes wait, until open or close. It reports whether somebody is just going through.
func (d *door) hold() (entering bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = true
	return d.entering
}

// open ends what hold has begun.
func (d *door) open() {
	d.mu.Lock()
	d.held = false
	d.mu.Unlock()
	d.moved.Broadcast()
}

// close closes the door for good.
func (d *door) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.moved.Broadcast()
}
