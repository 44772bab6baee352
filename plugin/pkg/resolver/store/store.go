// Package store keeps what a resolver has learned: RRsets and denials with their rank, delegations, failures, and
// what is known of servers. It is made for a validator to stand above, too, so that nothing is kept twice.
//
//	reply ─▶ scrubbed ─┬─▶ RRsets       name, type ─▶ Entry: an RRset or a denial, with rank and state
//	                   ├─▶ Delegations  zone ─▶ Delegation: servers as the parent tells them, with glue
//	                   ├─▶ Failures     name, type ─▶ until when nobody is asked (RFC 9520)
//	                   └─▶ Servers      address ─▶ Server: round trips, EDNS, lameness
//
// Nothing here reads a clock: the time is an argument. All is bounded in octets or entries, what was used least
// goes first, and all may be used by any number of goroutines. What is kept never changes, but for Servers; it is
// replaced. Start at Stores.
package store

import "net/netip"

// Time is nanoseconds since 1970, by the clock that TTLs are judged by.
type Time int64

// Second is a second.
const Second Time = 1e9

// After is the time so many seconds later.
func (t Time) After(seconds uint32) Time { return t + Time(seconds)*Second }

// Left is how many whole seconds there are from now to t, 0 if it is over.
func (t Time) Left(now Time) uint32 {
	if t <= now {
		return 0
	}
	return uint32(min((t-now+Second/2)/Second, 1<<31-1))
}

// Stores is all that a resolver has learned.
type Stores struct {
	RRsets      RRsets
	Delegations Delegations
	Failures    Failures
	Servers     Servers
}

// New is stores of so many octets for records, and so many server addresses.
func New(octets int64, servers int) *Stores {
	s := &Stores{}
	s.RRsets.shelf.init(octets/4*3, key.hashed, func(k key, e *Entry) int64 { return e.size() + int64(len(k.name)) })
	s.Delegations.init(octets / 16 * 3)
	s.Failures.shelf.init(octets/16, key.hashed, func(k key, f Failure) int64 { return int64(160 + len(k.name) + len(f.Text)) })
	s.Servers.shelf.init(int64(servers), hashOfAddr, func(netip.AddrPort, *Server) int64 { return 1 })
	s.Servers.lame.init(int64(servers)*lameOctets, lameAt.hash, func(l lameAt, _ lameness) int64 { return int64(150 + len(l.zone)) })
	return s
}
