//go:build !windows && !plan9 && !js

package coremain

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// askAgainEvery is how often Caddy is asked again for what it has not begun.
const askAgainEvery = 100 * time.Millisecond

// begins are the lines with which Caddy begins what a signal asks for. A program that embeds the server may have each
// line begin with more, such as the time (LogFlags).
var begins = map[os.Signal][]byte{
	syscall.SIGUSR1: []byte("[INFO] SIGUSR1: Reloading"),
	syscall.SIGUSR2: []byte("[INFO] SIGUSR2: Upgrading"),
}

// requests are the signals that ask for a reload or an upgrade of a process that serves. Caddy handles one signal at a
// time. Of what comes meanwhile it keeps one and drops the others: an upgrade, too, behind a reload that waits for
// another one.
//
//	signal ──▶ Caddy: handled, kept or dropped
//	   └─────▶ in ──▶ open ──▶ raised again and again ──▶ Caddy
//	                    ▲ closed by the line with which Caddy begins it
//
// What is begun answers all that have asked for it before.
type requests struct {
	wake chan os.Signal // something has come
	end  chan os.Signal // the process is asked to end

	mu   sync.Mutex
	in   chan os.Signal     // what has come
	open map[os.Signal]bool // asked for, and not begun since
}

// newRequests notes what is asked for from now on.
func newRequests() *requests {
	r := &requests{
		wake: make(chan os.Signal, 1),
		end:  make(chan os.Signal, 1),
		in:   make(chan os.Signal, 64),
		open: map[os.Signal]bool{},
	}
	log.Hear(r.hear)
	signal.Notify(r.in, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Notify(r.wake, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Notify(r.end, syscall.SIGTERM, syscall.SIGQUIT)
	return r
}

// add notes what has come, and what has been asked for before.
func (r *requests) add(signals ...os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take()
	for _, s := range signals {
		r.note(s)
	}
}

// see sees to it that each request is begun, until the process is asked to end. Caddy gets time for what it was told
// while the start ended.
func (r *requests) see() {
	again := time.NewTimer(askAgainEvery)
	for {
		select {
		case <-r.wake:
			r.add() // so that there is room for others
			again.Reset(askAgainEvery)
		case <-again.C:
			if r.ask() {
				again.Reset(askAgainEvery)
			}
		case <-r.end:
			return
		}
	}
}

// ask asks Caddy for what is open, and reports whether anything is. Without its lines nobody knows.
func (r *requests) ask() bool {
	hears := log.Hears() // without the lock: the logger holds its own where it tells hear
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take()
	if !hears {
		clear(r.open)
	}
	for s := range r.open {
		raise(s)
	}
	return len(r.open) > 0
}

// take opens what has come. It is called with the lock, for what is begun meanwhile.
func (r *requests) take() {
	for len(r.in) > 0 {
		r.note(<-r.in)
	}
}

// note opens a request if s is one.
func (r *requests) note(s os.Signal) {
	if begins[s] != nil {
		r.open[s] = true
	}
}

// hear closes what Caddy begins, whether it has been taken from in or not.
func (r *requests) hear(line []byte) {
	for s, begin := range begins {
		if !bytes.HasSuffix(bytes.TrimSuffix(line, []byte("\n")), begin) {
			continue
		}
		// Signals are handed out to one channel after the other, and Caddy's may come first. To ask for them anew waits
		// until that is over: what Caddy begins stands in r.in, too.
		signal.Notify(r.in, s)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.take()
		delete(r.open, s)
		return
	}
}
