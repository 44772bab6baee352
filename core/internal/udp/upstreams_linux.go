package udp

import (
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
)

// upstreamSockets is what a loop reads beside its own socket: those on which replies come for the queries that it
// sent upstream. They are read by turns, by one goroutine: what a query left in the processor's caches is still
// there, nobody has to be woken, and what came meanwhile on either side makes batches.
type upstreamSockets struct {
	own  *intake
	loop *eventloop.Loop

	// set is nil as long as nothing is watched: most loops never need it. Only the loop changes it, with wakeMu held.
	set *mmsg.Set[eventloop.Readable]

	// methods as values, made once
	look    func(uintptr) bool
	reading func(uintptr)
}

// closedCheck is how often a loop that waits looks whether somebody has closed its socket, of which epoll does not
// tell.
const closedCheck = time.Second

// watchUpstreams lets plugins have descriptors read in loop.
func (s *intake) watchUpstreams(loop *eventloop.Loop) {
	u := &s.upstreams
	u.own, u.loop = s, loop
	u.look, u.reading = u.readAll, s.take
	loop.WatchWith(u)
}

// Watch implements eventloop.Watcher. It is called within a batch of the loop.
func (u *upstreamSockets) Watch(fd int, r eventloop.Readable) (index int32, err error) {
	if u.set == nil {
		if err := u.begin(); err != nil {
			return 0, err
		}
	}
	return u.set.Add(fd, r)
}

// Unwatch implements eventloop.Watcher.
func (u *upstreamSockets) Unwatch(index int32) { u.set.Remove(index) }

// begin makes the set.
func (u *upstreamSockets) begin() error {
	set, err := mmsg.NewSet[eventloop.Readable]()
	if err != nil {
		return err
	}
	if cerr := u.own.raw.Control(func(fd uintptr) { err = set.AddSilent(int(fd)) }); cerr != nil || err != nil {
		set.Close()
		return errors.Join(cerr, err)
	}
	u.own.wakeMu.Lock()
	defer u.own.wakeMu.Unlock()
	u.set = set
	u.rest()
	return nil
}

// rest sets when the loop looks again whether it is to end. wakeMu is held.
func (u *upstreamSockets) rest() {
	if u.own.woken {
		u.set.SetDeadline(time.Now())
		return
	}
	u.set.SetDeadline(time.Now().Add(closedCheck))
}

// receiveByTurns is receive when there are any.
func (s *intake) receiveByTurns() (int, error) {
	u := &s.upstreams
	if !s.wait {
		u.set.SetDeadline(time.Time{}) // else the poller would not let us look
	}
	err := u.set.Wait(u.look)
	if s.wait && errors.Is(err, os.ErrDeadlineExceeded) {
		u.check()
	}
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// check has the socket read alone again if there are none any more. A socket that was closed the next look finds.
func (u *upstreamSockets) check() {
	u.own.wakeMu.Lock()
	defer u.own.wakeMu.Unlock()
	if u.set.Len() > 0 {
		u.rest()
		return
	}
	u.set.Close()
	u.set = nil
}

// readAll reads the upstreams, and a batch from the socket. It reports false to wait until any has something.
func (u *upstreamSockets) readAll(uintptr) bool {
	s := u.own
	for yielded := false; ; {
		// The upstreams first: their replies end queries that have waited longer.
		some := u.readOnce()
		if err := s.raw.Control(u.reading); err != nil {
			s.err = err
			return true
		}
		switch {
		case s.n > 0, s.err != nil, !s.wait:
			return true
		case !some && !yielded && s.yield():
			yielded = true
		case !some:
			log.Idle()
			return false
		}
	}
}

// readOnce reads those of the upstreams that have something.
func (u *upstreamSockets) readOnce() bool {
	ready := u.set.Poll()
	if len(ready) > 0 {
		u.loop.Read(ready)
	}
	return len(ready) > 0
}

// endUpstreams gives back what is watched.
func (s *intake) endUpstreams() {
	if s.upstreams.set == nil {
		return
	}
	for _, r := range s.upstreams.set.Close() {
		r.Orphaned()
	}
}
