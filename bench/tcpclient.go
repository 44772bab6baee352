package main

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"
)

// runTCP pipelines queries over one connection (RFC 7766 §6.2.1.1): all that may be
// sent goes out in one write, all that has come is read at once.
func (c *client) runTCP() error {
	conn, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port})
	if err != nil {
		return err
	}
	defer conn.Close()
	in, out, filled := make([]byte, 1<<17), make([]byte, 0, 1<<15), 0
	for now := time.Now(); !c.over(now) || c.flight.busy() > 0; now = time.Now() {
		c.look(now)
		out = c.appendStream(out[:0], now)
		if len(out) > 0 {
			if _, err := conn.Write(out); err != nil {
				return err
			}
		}
		if err := conn.SetReadDeadline(c.wake(now)); err != nil {
			return err
		}
		n, err := conn.Read(in[filled:])
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		filled += n
		used := c.landStream(in[:filled], time.Now())
		filled = copy(in, in[used:filled])
	}
	return nil
}

// appendStream appends the queries that may be sent, each behind its length.
func (c *client) appendStream(b []byte, now time.Time) []byte {
	for n := c.quota(now); n > 0; n-- {
		start := len(b)
		b = c.next(append(b, 0, 0), now)
		binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start-2))
	}
	return b
}

// landStream counts the responses that b holds in full and returns their length.
func (c *client) landStream(b []byte, now time.Time) int {
	used := 0
	for len(b)-used >= 2 {
		end := used + 2 + int(binary.BigEndian.Uint16(b[used:]))
		if end > len(b) {
			break
		}
		c.land(b[used+2:end], now)
		used = end
	}
	return used
}
