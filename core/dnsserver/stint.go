package dnsserver

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// stint is the time in which a connection's goroutine serves what has come, on a lane of its own: from the first query until it has
// to wait. It belongs to that goroutine.
type stint struct {
	lane  *wire.Lane // nil between stints
	run   *run       // as lane
	began time.Time
}

// enter begins a stint, unless one goes on.
func (s *stint) enter() {
	if s.lane == nil {
		s.run = runs.Get().(*run)
		s.began = time.Now()
		s.lane = enterLane()
	}
}

// leave ends the stint. It is called before anything that may wait; the lane is wanted by others.
func (s *stint) leave() {
	if s.lane != nil {
		runs.Put(s.leaveWith())
	}
}

// leaveWith is leave for who still needs run, which he puts back then.
func (s *stint) leaveWith() *run {
	s.lane.Done(time.Since(s.began))
	s.lane.Leave()
	r := s.run
	s.lane, s.run = nil, nil
	return r
}
