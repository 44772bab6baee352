package endpoint

import (
	"net"
	"net/http"
	"sync"
)

// mostConns is how many connections a server has at one time. Those who scrape and probe it have a few each.
const mostConns = 128

// openConns are the connections of a server:
//
//	new (no request has come) ──▶ active (a request is answered) ◀──▶ idle
//
// When there are too many, the oldest that is new or idle makes room, or the oldest of all if none is: so the next one
// that comes is served, whoever holds the others, and neither memory nor files run out.
type openConns struct {
	mu   sync.Mutex
	all  map[net.Conn]standing
	turn uint64 // of the last change
}

// standing is what a connection does, and since which change.
type standing struct {
	state http.ConnState
	since uint64
}

// note is told of each change of a connection's state.
func (o *openConns) note(c net.Conn, state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.all[c]
	switch {
	case state == http.StateClosed || state == http.StateHijacked:
		delete(o.all, c)
		return
	case state == http.StateNew:
		if len(o.all) >= mostConns {
			o.makeRoom()
		}
	case !known: // it has made room
		return
	}
	if o.all == nil {
		o.all = map[net.Conn]standing{}
	}
	o.turn++
	o.all[c] = standing{state, o.turn}
}

// makeRoom closes the connection that matters least. It is called with the lock.
func (o *openConns) makeRoom() {
	var least net.Conn
	for c := range o.all {
		if least == nil || o.all[c].before(o.all[least]) {
			least = c
		}
	}
	delete(o.all, least)
	// TLS would wait until its client takes the farewell.
	if t, ok := least.(interface{ NetConn() net.Conn }); ok {
		least = t.NetConn()
	}
	least.Close()
}

// before reports whether s makes room before t.
func (s standing) before(t standing) bool {
	if busy := s.state == http.StateActive; busy != (t.state == http.StateActive) {
		return !busy
	}
	return s.since < t.since
}

// closeNew closes those on which no request has come yet. net/http would wait five seconds for each when the server
// stops.
func (o *openConns) closeNew() {
	o.mu.Lock()
	var silent []net.Conn
	for c, s := range o.all {
		if s.state == http.StateNew {
			silent = append(silent, c)
			delete(o.all, c)
		}
	}
	o.mu.Unlock()
	for _, c := range silent {
		c.Close()
	}
}
