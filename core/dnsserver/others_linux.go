package dnsserver

import (
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// otherDescriptors is what a loop reads beside its own socket: those on which replies come for the queries that it sent
// upstream. They are read by turns, by one goroutine: what a query left in the processor's caches is still there, nobody
// has to be woken, and what came meanwhile on either side makes batches.
type otherDescriptors struct {
	sock *batchedSocket
	lane *wire.Lane
	set  *mmsg.Set[wire.Readable]

	// methods as values, made once
	look    func(uintptr) bool
	reading func(uintptr)
}

// closedCheck is how often a loop that waits looks whether somebody has closed its socket, of which epoll does not tell.
const closedCheck = time.Second

// readOthers lets plugins have descriptors read in lane.
func (s *batchedSocket) readOthers(lane *wire.Lane) { lane.WatchWith(&watcher{sock: s, lane: lane}) }

// watcher makes the set when the first one is to be watched: most loops never need it.
type watcher struct {
	sock *batchedSocket
	lane *wire.Lane
}

// Watch implements wire.Watcher.
func (w *watcher) Watch(fd int, r wire.Readable) (index int32, err error) {
	o := w.sock.others
	if o == nil {
		if o, err = w.sock.beginOthers(w.lane); err != nil {
			return 0, err
		}
	}
	return o.set.Add(fd, r)
}

// Unwatch implements wire.Watcher.
func (w *watcher) Unwatch(index int32) { w.sock.others.set.Remove(index) }

// beginOthers is called within a batch of the loop.
func (s *batchedSocket) beginOthers(lane *wire.Lane) (*otherDescriptors, error) {
	set, err := mmsg.NewSet[wire.Readable]()
	if err != nil {
		return nil, err
	}
	if cerr := s.raw.Control(func(fd uintptr) { err = set.AddSilent(int(fd)) }); cerr != nil || err != nil {
		set.Close()
		return nil, errors.Join(cerr, err)
	}
	o := &otherDescriptors{sock: s, lane: lane, set: set}
	o.look = o.readAll
	o.reading = func(fd uintptr) { s.recvmmsg(fd) }
	s.wakeMu.Lock()
	defer s.wakeMu.Unlock()
	s.others = o
	o.rest()
	return o, nil
}

// rest sets when the loop looks again whether it is to end. wakeMu is held.
func (o *otherDescriptors) rest() {
	if o.sock.woken {
		o.set.SetDeadline(time.Now())
		return
	}
	o.set.SetDeadline(time.Now().Add(closedCheck))
}

// receiveByTurns is receive when there are others.
func (s *batchedSocket) receiveByTurns() (int, error) {
	o := s.others
	if !s.wait {
		o.set.SetDeadline(time.Time{}) // else the poller would not let us look
	}
	err := o.set.Wait(o.look)
	if s.wait && errors.Is(err, os.ErrDeadlineExceeded) {
		o.check()
	}
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// check has the socket read alone again if there are no others any more. A socket that was closed the next look finds.
func (o *otherDescriptors) check() {
	o.sock.wakeMu.Lock()
	defer o.sock.wakeMu.Unlock()
	if o.set.Len() > 0 {
		o.rest()
		return
	}
	o.set.Close()
	o.sock.others = nil
}

// readAll reads the others, and a batch from the socket. It reports false to wait until any has something.
func (o *otherDescriptors) readAll(uintptr) bool {
	s := o.sock
	for {
		others := o.readOnce()
		if err := s.raw.Control(o.reading); err != nil {
			s.err = err
			return true
		}
		switch {
		case s.n > 0, s.err != nil, !s.wait:
			return true
		case !others:
			return false
		}
	}
}

// readOnce reads those of the others that have something.
func (o *otherDescriptors) readOnce() bool {
	ready := o.set.Poll()
	if len(ready) > 0 {
		o.lane.Read(ready)
	}
	return len(ready) > 0
}

// endOthers gives back what is watched.
func (s *batchedSocket) endOthers() {
	if s.others == nil {
		return
	}
	for _, r := range s.others.set.Close() {
		r.Orphaned()
	}
}
