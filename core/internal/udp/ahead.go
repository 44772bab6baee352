package udp

import (
	"math"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// queries parses the packets of a batch. Large tables are told of a query while the two before it are served; see
// package readahead.
type queries struct {
	tables  []readahead.Table // that are large
	batches int               // until these are looked for again
	packets int               // of this batch, if they are read ahead; else 0
	next    int               // packet to be parsed

	ring   [4]wire.Query // packet i is in i modulo 4
	proper [4]bool       // what Parse said
}

// lookAfter is the batches after which a loop looks again which tables are large.
const lookAfter = 256

func (r *queries) init() {
	for i := range r.ring {
		r.ring[i].Plain = true
	}
}

// begin begins a batch of n packets. They are not read ahead where they are parsed in other forms than they came in.
func (r *queries) begin(s *service.Service, n int, asTheyCame bool) {
	if r.batches--; r.batches < 0 && readahead.Works {
		r.batches = lookAfter
		r.tables = s.LargeTables(r.tables[:0])
	}
	r.packets, r.next = 0, 0
	if len(r.tables) > 0 && n > 1 && asTheyCame {
		r.packets = n
	}
}

// query is packet i, parsed, and whether it is one for the wire lane.
func (r *queries) query(i int, packet []byte, sock batchSocket) (q *wire.Query, proper bool) {
	if r.packets == 0 {
		return &r.ring[0], r.ring[0].Parse(packet)
	}
	for r.next < r.packets && r.next <= i+readahead.Steps {
		r.parseNext(sock)
	}
	return &r.ring[i%len(r.ring)], r.proper[i%len(r.ring)]
}

// parseNext parses the next packet. For the tables it is in its first step now, and the one before it in the second.
func (r *queries) parseNext(sock batchSocket) {
	q, proper := &r.ring[r.next%len(r.ring)], &r.proper[r.next%len(r.ring)]
	*proper = q.Parse(sock.packet(r.next))
	r.tell(r.next, 0)
	r.tell(r.next-1, 1)
	if r.next++; r.next == r.packets {
		r.tell(r.packets-1, 1)
	}
}

// tell tells the tables of packet i, if that is a query.
func (r *queries) tell(i, step int) {
	if i < 0 || !r.proper[i%len(r.ring)] {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			log.Errorf("Recovered from panic in reading ahead, which ends: %v", v)
			r.tables, r.batches = nil, math.MaxInt
		}
	}()
	for _, t := range r.tables {
		t.ReadAhead(&r.ring[i%len(r.ring)], step)
	}
}
