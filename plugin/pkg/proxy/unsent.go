package proxy

import (
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// unsent is the queries of one batch of a lane, which are sent when it is over: one after the other, with nothing between
// them, so that an upstream which is woken by the first one finds the others, too.
type unsent struct {
	mu  sync.Mutex
	all []unsentQuery
}

type unsentQuery struct {
	socket *udpSocket
	x      *Exchange
	id     uint16
	query  []byte
}

// sendLater sends x's query, which is under way on s, at the end of the lane's batch.
func (e *engine) sendLater(lane *wire.Lane, u unsentQuery) {
	list := e.unsent.Get(lane)
	list.mu.Lock()
	list.all = append(list.all, u)
	first := len(list.all) == 1
	list.mu.Unlock()
	if first {
		lane.SendLater(list)
	}
}

// Send implements wire.Sender. What has ended meanwhile is left out: its memory may be another query's.
func (l *unsent) Send() {
	l.mu.Lock()
	all := l.all
	l.all = nil
	l.mu.Unlock()
	for i := range all {
		u := &all[i]
		e := u.socket.engine
		e.mu.Lock()
		waits := u.socket.pending.find(u.id) == u.x
		e.mu.Unlock()
		if waits {
			e.sendUDP(u.socket, u.x, u.id, u.query)
		}
	}
	clear(all)
	l.mu.Lock()
	if l.all == nil {
		l.all = all[:0]
	}
	l.mu.Unlock()
}
