package store

import "time"

// This file is what is known of servers that are silent over UDP and reply over TCP: a firewall drops datagrams, or
// long ones, or many get lost. A time-out says nothing of that, nor does a reply over TCP that takes longer than
// replies over UDP were waited for: such a server is far, or slow.

const (
	streamSpan = 60 * Second // for so long a server is asked over TCP only
	tryAgain   = 10 * Second // for so long one is left alone over TCP that does not reply at all
	sameMoment = Second / 20 // in which others may still join one that asks the same
	deafTwice  = 2           // queries over UDP in a row that were lost; one is enough where others reply over TCP only
)

// streams is that of one server.
type streams struct {
	lostUDP int           // queries over UDP since a reply over it
	waited  time.Duration // for these, at most
	stream  Time          // it is asked over TCP only until
	tried   Time          // when it was last asked over TCP as it did not reply
	asker   uint32        // what it was asked then
}

// Lost notes that no reply came to a query in the time waited.
func (v *Server) Lost(tcp bool, waited time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if tcp {
		v.stream = 0
		return
	}
	v.lostUDP++
	v.waited = max(v.waited, waited)
}

// Heard notes a reply.
func (v *Server) Heard(tcp bool, rtt time.Duration, now Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case !tcp:
		v.lostUDP, v.waited, v.stream = 0, 0, 0
	case (v.lostUDP >= deafTwice || v.lostUDP > 0 && v.all.Streamed(now)) && rtt < v.waited:
		v.stream = now + streamSpan
		v.all.streamed.Store(int64(v.stream))
	}
}

// Streams reports whether the server is asked over TCP only, for now.
func (v *Server) Streams(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now < v.stream && v.stream-now <= streamSpan
}

// Streamed reports whether some server was found of late that replies over TCP only.
func (s *Servers) Streamed(now Time) bool {
	until := Time(s.streamed.Load())
	return now < until && until-now <= streamSpan
}

// MayStream reports whether a server that does not reply at all may be asked over TCP for something of name: once in a
// while, and by all who ask that in one moment.
func (v *Server) MayStream(name string, now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	ago := now - v.tried
	return v.tried == 0 || ago < 0 || ago >= tryAgain || ago < sameMoment && v.asker == hashOf(name)
}

// TryStream notes that the server is.
func (v *Server) TryStream(name string, now Time) {
	v.mu.Lock()
	v.tried, v.asker = now, hashOf(name)
	v.mu.Unlock()
}
