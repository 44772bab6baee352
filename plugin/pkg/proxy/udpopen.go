package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// This file opens the UDP sockets to an upstream, and chooses one where no more may be, or can be, opened.

const openPause = int64(100 * time.Millisecond) // see socketFor

// socketFor is a socket that takes x: a new one, or if there are enough, any one of those that are read where x was
// begun. mu is held, but not all the time.
//
// When one cannot be opened, none is for a moment, as long as there are others: where all ports are taken, to find that
// out takes the system a millisecond.
func (e *engine) socketFor(x *Exchange, later *unsent, loop *eventloop.Loop, now int64) (*udpSocket, error) {
	if e.stopped {
		return nil, errStopped
	}
	p := &e.udp
	list := &p.none
	if later != nil && loop.Watcher() != nil {
		list = &later.own
	}
	if n := p.n + p.opening; n < maxSockets && (p.n == 0 || now >= p.retry) && socketBudget.take(n < minSockets) {
		p.opening++
		e.unlock()
		s, err := e.openUDP(loop)
		e.mu.Lock()
		p.opening--
		switch {
		case err != nil:
			socketBudget.give()
			if p.n == 0 {
				return nil, err
			}
			p.retry = e.now() + openPause
		case e.stopped:
			socketBudget.give()
			e.doomed = append(e.doomed, s)
			return nil, errStopped
		default:
			s.opened = e.now()
			p.add(s, list)
			e.keepHouse(s.opened)
			e.proxy.counts.miss(viaUDP)
			return s, nil
		}
	}
	if p.n == 0 {
		return nil, ErrBusy
	}
	for i := 0; len(list.all) == 0; i++ { // there is one that is read elsewhere
		list = p.lists[i]
	}
	s := list.all[e.random.Uint64()%uint64(len(list.all))]
	if s.pending.n >= crowded {
		return nil, ErrBusy
	}
	e.reuse(x)
	return s, nil
}

// openUDP opens a socket. mu is not held.
func (e *engine) openUDP(loop *eventloop.Loop) (*udpSocket, error) {
	remote, err := e.proxy.where.find()
	if err != nil {
		return nil, err
	}
	all, err := e.udpSockets()
	if err != nil {
		return nil, err
	}
	s := &udpSocket{engine: e}
	s.Socket, err = all.Open(e.proxy.transport.conf.Load().local, remote, s, loop)
	return s, stoppedOr(err)
}

// stoppedOr is err, which is about opening a socket, or that the Proxy was stopped meanwhile.
func stoppedOr(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return errStopped
	}
	return err
}

// udpSockets is the system's part of the pool, made at first use.
func (e *engine) udpSockets() (udpsockets.Set, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, errStopped
	}
	var err error
	if e.udp.sockets == nil {
		e.udp.sockets, err = e.udp.make()
	}
	return e.udp.sockets, err
}
