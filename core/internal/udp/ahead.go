package udp

import (
	"math"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// queries parses the packets of a batch. Large tables are told of those that are served next; see package readahead.
type queries struct {
	tables  []readahead.Table // that are large
	batches int               // until these are looked for again
	packets int               // of this batch, if they are read ahead; else 0
	next    int               // how far that is: packet next is to be parsed, and those before it were told of

	ring [8]ahead // packet i is in i modulo 8
}

// ahead is a query before it is served.
type ahead struct {
	wire.Query
	proper bool // what Parse said
	found  [readahead.MostTables]any
}

// lookAfter is the batches after which a loop looks again which tables are large.
const lookAfter = 256

func (r *queries) init(crowded func() bool) {
	for i := range r.ring {
		r.ring[i].Plain = true
		r.ring[i].SetCrowded(crowded, eventloop.Parked)
	}
}

// at is where packet i is.
func (r *queries) at(i int) *ahead { return &r.ring[i%len(r.ring)] }

// begin begins a batch of n packets. They are not read ahead where they are parsed in other forms than they came in.
func (r *queries) begin(s *service.Service, n int, asTheyCame bool) {
	r.packets, r.next = 0, 0
	if n == 1 || !asTheyCame || !readahead.Works {
		return
	}
	if r.batches--; r.batches < 0 {
		r.batches = lookAfter
		r.tables = s.LargeTables(r.tables[:0])
	}
	if len(r.tables) > 0 {
		r.packets = n
	}
}

// query is packet i, parsed, and whether it is one for the wire lane.
func (r *queries) query(i int, packet []byte, sock batchSocket) (q *wire.Query, proper bool) {
	if r.packets == 0 {
		return &r.ring[0].Query, r.ring[0].Parse(packet)
	}
	r.readAhead(i+readahead.First, sock)
	return &r.at(i).Query, r.at(i).proper
}

// readAhead goes on to packet last, or beyond the end of the batch, for those before it.
func (r *queries) readAhead(last int, sock batchSocket) {
	defer func() {
		if v := recover(); v != nil {
			log.Errorf("Recovered from panic in reading ahead, which ends: %v", v)
			r.tables, r.batches = nil, math.MaxInt
			for ; r.next < r.packets && r.next <= last; r.next++ {
				r.parse(sock)
			}
		}
	}()
	for ; r.next <= last; r.next++ {
		if r.next < r.packets {
			r.parse(sock)
		}
		for left := readahead.First; left > 0; left-- {
			if i := r.next - readahead.First + left; i >= 0 && i < r.packets && r.at(i).proper {
				r.tell(r.at(i), left)
			}
		}
	}
}

func (r *queries) parse(sock batchSocket) {
	a := r.at(r.next)
	a.proper = a.Parse(sock.packet(r.next))
	clear(a.found[:])
}

func (r *queries) tell(a *ahead, left int) {
	for i, t := range r.tables {
		a.found[i] = t.ReadAhead(&a.Query, left, a.found[i])
	}
	if left == 1 {
		clear(a.found[:]) // lest what a table replaces meanwhile stays until the next batch
	}
}
