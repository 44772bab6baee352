package proxy

import "time"

// A server may answer one query of a connection only, and leave it open, and a translator of addresses on the way may
// forget a connection that is idle. So a Peer is waited for no longer than a moment on a connection that was open
// before; then the query goes out on a new one. A Peer with which that happens twice in a row gets a connection for
// each query, for a while; what is lost at one time counts once. One that takes that long on a new connection, too, is
// slow, and waited for.

const (
	muteWait  = time.Second
	muteTwice = 2
	singleFor = int64(5 * time.Minute)
)

// patience is for how long x is waited for.
func (x *Exchange) patience() time.Duration {
	if x.hurries() != nil {
		return min(x.Timeout, muteWait)
	}
	return x.Timeout
}

// hurries is the connection that x is under way on if it was open before, and x may go out on another one; else nil.
func (x *Exchange) hurries() *streamConn {
	if x.To == nil || !x.reused || x.retries > 0 || x.Timeout <= muteWait {
		return nil
	}
	if c, ok := x.on.(*streamConn); ok && c.open && x.sent >= c.pool.slow {
		return c
	}
	return nil
}

// ends is when x has been waited for.
func (x *Exchange) ends() int64 { return min(x.sent+int64(x.Timeout), x.deadline) }

// mute notes that an exchange, which was taken, had no reply on c for a moment. mu is held.
func (c *streamConn) mute(now int64) {
	p := c.pool
	if c.began > p.muted { // else it is the same loss, which may be over
		if p.muted, p.mutes = now, p.mutes+1; p.mutes >= muteTwice {
			p.oneOff, p.single = true, now+singleFor
		}
	}
	c.retire()
}
