package dnsserver

import (
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// otherDescriptors is what a loop reads beside its own socket: those on which replies come for the queries that it sent
// upstream. They are read by turns, by one goroutine: what a query left in the processor's caches is still there, nobody
// has to be woken, and what came meanwhile on either side makes batches.
type otherDescriptors struct {
	sock *batchedSocket
	lane *wire.Lane

	// set is nil as long as nothing is watched: most loops never need it. Only the loop changes it, with wakeMu held.
	set *mmsg.Set[wire.Readable]

	// methods as values, made once
	look    func(uintptr) bool
	reading func(uintptr)
}

// closedCheck is how often a loop that waits looks whether somebody has closed its socket, of which epoll does not tell.
const closedCheck = time.Second

// readOthers lets plugins have descriptors read in lane.
func (s *batchedSocket) readOthers(lane *wire.Lane) {
	o := &s.others
	o.sock, o.lane = s, lane
	o.look, o.reading = o.readAll, s.take
	lane.WatchWith(o)
}

// Watch implements wire.Watcher. It is called within a batch of the loop.
func (o *otherDescriptors) Watch(fd int, r wire.Readable) (index int32, err error) {
	if o.set == nil {
		if err := o.begin(); err != nil {
			return 0, err
		}
	}
	return o.set.Add(fd, r)
}

// Unwatch implements wire.Watcher.
func (o *otherDescriptors) Unwatch(index int32) { o.set.Remove(index) }

// begin makes the set.
func (o *otherDescriptors) begin() error {
	set, err := mmsg.NewSet[wire.Readable]()
	if err != nil {
		return err
	}
	if cerr := o.sock.raw.Control(func(fd uintptr) { err = set.AddSilent(int(fd)) }); cerr != nil || err != nil {
		set.Close()
		return errors.Join(cerr, err)
	}
	o.sock.wakeMu.Lock()
	defer o.sock.wakeMu.Unlock()
	o.set = set
	o.rest()
	return nil
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
	o := &s.others
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
	o.set = nil
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
			s.pace.pause()
			log.Idle()
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
	if s.others.set == nil {
		return
	}
	for _, r := range s.others.set.Close() {
		r.Orphaned()
	}
}
