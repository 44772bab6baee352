package proxy

import (
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"
)

// unsent is the queries of one batch of a loop, which are sent when it is over, with nothing between them: an upstream
// that is woken by the first one finds the others, too. They leave from one port, by one system call, and the replies
// come in as few. The next batch has another port, so that those who guess must still guess it.
type unsent struct {
	engine *engine

	// guarded by the engine's lock
	filling []unsentQuery
	run     int        // the last so many have the same socket
	own     socketList // the loop's goroutine reads them

	sendMu sync.Mutex // never held while the engine's lock is
	going  []unsentQuery
	out    udpsockets.Datagrams
}

type unsentQuery struct {
	socket *udpSocket
	x      *Exchange
	id     uint16
	query  []byte
	batch  uint32 // the number of those with which it goes together; 0 if it goes alone
}

// unsentOf is the unsent of a loop, which the caller is in, nil without a loop.
func (e *engine) unsentOf(loop *eventloop.Loop) *unsent {
	if loop == nil {
		return nil
	}
	l := e.unsent.Get(loop)
	if l.engine == nil { // later, another goroutine may be sending
		l.engine = e
	}
	return l
}

// socket is the one that the next query of the batch leaves from, nil if any will do. The engine's lock is held.
func (l *unsent) socket() *udpSocket {
	if l == nil || l.run == 0 || l.run == udpsockets.MaxRun {
		return nil
	}
	s := l.filling[len(l.filling)-1].socket
	if s.pending.n == 0 || s.pending.n >= crowded { // with none under way it may be closed
		return nil
	}
	return s
}

// add sends u at the end of the loop's batch. The engine's lock is held.
func (l *unsent) add(loop *eventloop.Loop, u unsentQuery) {
	n := len(l.filling)
	if n == 0 {
		loop.SendLater(l)
	}
	if n > 0 && l.run < udpsockets.MaxRun && l.filling[n-1].socket == u.socket {
		l.run++
	} else {
		l.run = 1
	}
	l.filling = append(l.filling, u)
}

// Send implements eventloop.Sender.
func (l *unsent) Send() {
	defer l.engine.ending.enter().Done()
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	all := l.take()
	for len(all) > 0 {
		n := l.runFrom(all)
		l.send(all[0].socket, all[:n])
		all = all[n:]
	}
	clear(l.going)
}

// take is what is to be sent. What has ended meanwhile is left out: its memory may be another query's.
func (l *unsent) take() []unsentQuery {
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	l.filling, l.going, l.run = l.going[:0], l.filling, 0
	n := 0
	for _, u := range l.going {
		if u.socket.pending.find(u.id) == u.x {
			l.going[n] = u
			n++
		}
	}
	clear(l.going[n:])
	l.going = l.going[:n]
	l.number()
	return l.going
}

// number numbers the batches that go together. The engine's lock is held.
func (l *unsent) number() {
	now := int64(0)
	for from := 0; from < len(l.going); {
		to := from + l.runFrom(l.going[from:])
		if to-from > 1 {
			if now == 0 {
				now = l.engine.now()
			}
			batch := l.engine.together.next(now)
			for i := from; i < to; i++ {
				l.going[i].batch, l.going[i].x.batch = batch, batch
			}
		}
		from = to
	}
}

// runFrom is how many queries at the begin of all leave from one socket by one system call.
func (l *unsent) runFrom(all []unsentQuery) (n int) {
	for n = 1; n < len(all) && n < udpsockets.MaxRun && all[n].socket == all[0].socket; n++ {
	}
	return n
}

// send sends queries on s. One that cannot be sent ends.
func (l *unsent) send(s *udpSocket, all []unsentQuery) {
	if len(all) == 1 {
		l.engine.sendUDP(s, all[0].x, all[0].id, all[0].query)
		return
	}
	for i := range all {
		l.out.Add(all[i].query)
	}
	l.out.SendTogether(all[0].batch != 0)
	sent := 0
	for sent < len(all) {
		n, err := s.SendAll(&l.out)
		if sent += n; err != nil {
			u := &all[l.out.Number(sent)]
			l.engine.notSent(s, u.x, u.id, err)
			sent++
		}
	}
	if l.out.Refused() {
		l.engine.mu.Lock()
		l.engine.together.suspend(l.engine.now())
		l.engine.tellSuspended("the system does not cut what is sent together")
		l.engine.unlock()
	}
	l.out.Clear()
}
