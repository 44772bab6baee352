package main

import (
	"errors"
	"net"
	"os"
	"time"
)

// runUDP sends and receives in turns, in batches, until all is sent and answered or lost.
func (c *client) runUDP() error {
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port})
	if err != nil {
		return err
	}
	defer conn.Close()
	b := newBatch(conn)
	var deadline time.Time
	for now := time.Now(); !c.over(now) || c.flight.busy() > 0; now = time.Now() {
		c.look(now)
		for n := c.quota(now); n > 0 && b.room(); n-- {
			b.put(c.next(b.space(), now), nil)
		}
		if err := b.flush(); err != nil {
			return err
		}
		if at := c.wake(now); !at.Equal(deadline) {
			deadline = at
			if err := conn.SetReadDeadline(deadline); err != nil {
				return err
			}
		}
		n, err := b.read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return err
		}
		now = time.Now()
		for i := range n {
			msg, _ := b.received(i)
			c.land(msg, now)
		}
	}
	return nil
}
