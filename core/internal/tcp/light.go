package tcp

// This file is what is spoken on connections that have no goroutine yet. It answers whole messages from the wire lane,
// and leaves all else to a protocol.

import (
	"encoding/binary"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// serveLight is conn.Handler's Turn: it answers the messages that have come whole, as long as the wire lane has their
// replies at once.
func serveLight(t *conn.Turn, c *conn.Light, b []byte) (n int, stays bool) {
	s := t.Service
	c.Peer.Arrival = t.Began
	for len(b)-n >= 2 && mayAsk(s, c.Queries) && !t.Full() {
		head := b[n : n+2]
		size := int(binary.BigEndian.Uint16(head))
		if len(b)-n-2 < size || s.TooLong(size) {
			break
		}
		packet := b[n+2 : n+2+size]
		reply, out := t.Run.Serve(s, packet, c.Peer, t.Loop, nil)
		n += 2 + size
		c.Queries++
		if out != wire.Done {
			t.LeaveTo(c, packet, out)
			return n, false
		}
		if reply != nil && len(reply) <= wire.MaxMessage {
			t.Add([]byte{byte(len(reply) >> 8), byte(len(reply))}, reply)
		}
	}
	return n, n == len(b) && mayAsk(s, c.Queries)
}

// mayAsk reports whether who has asked so many queries may ask one more.
func mayAsk(s *service.Service, queries int) bool { return s.Queries < 0 || queries < s.Queries }

// resume is conn.Handler's Resume.
func resume(c *conn.Conn, from *conn.Light) conn.Protocol {
	return &protocol{Conn: c, queries: from.Queries, from: from}
}

// goOn lets the query wait with which the connection came to its goroutine.
func (p *protocol) goOn() {
	if q := p.from.Left; q != nil {
		p.wait(q.Service, q.Packet, q.Query, q.Outcome)
		q.Free()
	}
	p.from = nil
}
