package store

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Servers is what is known of servers, by address.
type Servers struct {
	shelf shelf[netip.AddrPort, *Server]
	lame  shelf[lameAt, lameness]
	keep  Time // how long what is known of EDNS, letters and lameness holds; 0 is 15 m
	families
	streamed atomic.Int64 // see Streamed
}

// OnSilence has f called when no server of IPv4, or of IPv6, replies any more, and when one does again. It is set
// before servers are asked.
func (s *Servers) OnSilence(f func(six, silent bool)) { s.tell = f }

// SetKeep sets how long what is known of EDNS, letters and lameness holds.
func (s *Servers) SetKeep(d time.Duration) { s.keep = Time(d) }

// Keep is what SetKeep set.
func (s *Servers) Keep() Time {
	if s.keep == 0 {
		return 15 * 60 * Second
	}
	return s.keep
}

// Server is what is known of one address. Its methods may be called by any goroutine.
type Server struct {
	Addr netip.AddrPort
	// Peer is what the exchanges with the server need; it belongs to who carries them out, who may set it once.
	Peer any

	all *Servers
	mu  sync.Mutex
	facts
}

// facts is what was found out about a server.
type facts struct {
	srtt      time.Duration // 0 is unknown
	rttvar    time.Duration
	losses    int  // time-outs since the last reply
	doubled   int  // how often the wait was doubled since then
	silent    Time // when the first of the losses was
	lost      Time // when the last one was
	asked     Time // when it was last asked since then
	edns      bool // it has given an OPT record
	plain     Time // without EDNS until
	again     Time // when EDNS was tried with it all the same
	options   bool // it has replied to a query with options of EDNS
	bare      Time // without them until
	caseBlind Time // without letters of random case until
	noTCP     Time // over UDP though a reply may be doubted, until
	lame      bool // for some zone, or it was
	streams
}

// lameAt is a server and a zone that it does not serve. These are kept beside the servers, in a bound of their own: one
// that is asked for many zones, or one of many, is told of by who has the zones.
type lameAt struct {
	server netip.AddrPort
	zone   string
}

func (l lameAt) hash() uint32 { return hashOfAddr(l.server) + hashOf(l.zone) }

type lameness struct {
	until    Time
	soft     bool // a last resort
	resolver bool // it answers, but not as an authority
}

const (
	unknownWait = 400 * time.Millisecond
	minWait     = 50 * time.Millisecond
	maxWait     = 3 * time.Second
	finalWait   = time.Second // for the reply to the last query to a server whose round trip time is known
	deadAfter   = 4           // time-outs in a row
	offAfter    = 64          // time-outs in a row
	deadSpan    = Second * 8 / 10
	pauseSpan   = 5 * Second
	offSpan     = 60 * Second // in which these were, at least
	deadProbe   = Second
	offProbe    = 60 * Second
	lameOctets  = 100 // of lame zones, for each server that may be known
)

// Get is the server at addr; make gives a new one its Peer.
func (s *Servers) Get(addr netip.AddrPort, make func() any) (v *Server) {
	if v, ok := s.shelf.get(addr); ok {
		return v
	}
	s.shelf.update(addr, func(old *Server, ok bool) (*Server, bool) {
		if v = old; !ok {
			v = &Server{Addr: addr, Peer: make(), all: s}
		}
		return v, true
	})
	return v
}

// Inherit takes over what others know of servers, each with a Peer of its own from make. What others learn later is
// theirs alone.
func (s *Servers) Inherit(others *Servers, make func(netip.AddrPort) any) {
	others.Each(func(o *Server) {
		v := s.Get(o.Addr, func() any { return make(o.Addr) })
		o.mu.Lock()
		known := o.facts
		o.mu.Unlock()
		v.mu.Lock()
		v.facts = known
		v.mu.Unlock()
	})
	s.inherit(&others.families)
	others.lame.removeIf(func(at lameAt, l lameness) bool { s.lame.set(at, l); return false })
}

// Total is the number of servers.
func (s *Servers) Total() int { n, _ := s.shelf.total(); return n }

// Each calls f with each server; for metrics and dumps.
func (s *Servers) Each(f func(*Server)) {
	s.shelf.removeIf(func(_ netip.AddrPort, v *Server) bool { f(v); return false })
}

// Wait is how long a reply is waited for (RFC 6298 §2, with other bounds): 400 ms of one that is unknown, or more where
// all are further away than that; twice as long for each time-out since it last replied; see Silent.
func (v *Server) Wait() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wait()
}

// wait is Wait. mu is held.
func (v *Server) wait() time.Duration {
	return min(v.once()<<min(v.doubled, 6), maxWait)
}

// once is wait without time-outs. mu is held.
func (v *Server) once() time.Duration {
	if v.srtt == 0 {
		return v.all.unknownWait(v.Addr.Addr())
	}
	return max(v.srtt+4*v.rttvar, minWait)
}

// ProbeWait is Wait of a server that counts as dead, where there is another one: it is no slower now than it was, or of
// no use beside that.
func (v *Server) ProbeWait() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return min(max(v.once(), unknownWait), v.wait())
}

// Patience is how long a reply to the last query is waited for at least. Of a server that never replied the longest
// round trip time counts: else it would be known to nobody.
func (v *Server) Patience() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.srtt == 0 {
		return maxWait
	}
	return finalWait
}

// RTT is the smoothed round trip time, as servers are compared: one that is unknown stands at the end of the
// band of the fast, and far behind it if its whole family is silent.
func (v *Server) RTT() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.srtt
	if d == 0 {
		d = unknownWait - 24*time.Millisecond
		if v.all.families.silent(v.Addr.Addr()) {
			d += 2 * unknownWait
		}
	}
	return d << min(v.doubled, 6)
}

// Replied notes a reply.
func (v *Server) Replied(rtt time.Duration, edns bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.losses, v.doubled = 0, 0
	rtt = max(rtt, time.Microsecond)
	v.all.reply(v.Addr.Addr(), rtt)
	v.edns = v.edns || edns
	if v.srtt == 0 {
		v.srtt, v.rttvar = rtt, rtt/2
		return
	}
	d := v.srtt - rtt
	v.rttvar += (max(d, -d) - v.rttvar) / 4
	v.srtt += (rtt - v.srtt) / 8
}

// Silent notes that no reply came to a query in the time waited. Of queries that are lost in one moment the first one
// doubles the wait: the others were sent when that was shorter, and tell nothing new.
func (v *Server) Silent(now Time, waited time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.losses == 0 || now < v.silent { // the clock may have been set back
		v.silent = now
	}
	if v.losses++; v.losses == 1 && v.srtt == 0 {
		v.all.silence(v.Addr.Addr())
	}
	v.lost = now
	if waited >= v.wait() {
		v.doubled++
	}
}

// dead reports whether the server has been silent for long: not for a moment, however many queries that cost.
func (v *Server) dead() bool { return v.losses >= deadAfter && v.lost-v.silent >= deadSpan }

// Dead reports whether the server is not to be asked now: it has been silent for long, and somebody probes it.
func (v *Server) Dead(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.dead() {
		return false
	}
	probe := deadProbe
	if v.losses >= offAfter && v.lost-v.silent >= offSpan {
		probe = offProbe
	}
	return now-v.asked < probe && now >= v.asked
}

// IsDead reports whether the server counts as dead, probed or not.
func (v *Server) IsDead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead()
}

// Pauses reports whether the server may just be away for a moment, busy or cut off: it has replied at some time, and
// has not been silent for longer than that.
func (v *Server) Pauses(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.srtt > 0 && (!v.dead() || now-v.silent < pauseSpan)
}

// Asked notes that the server is asked.
func (v *Server) Asked(now Time) {
	v.mu.Lock()
	v.asked = now
	v.mu.Unlock()
}

// Unheard reports whether the server has never replied: its round trip time may be longer than anybody has waited.
func (v *Server) Unheard() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.srtt == 0
}

// MixCase reports whether the server is asked with letters of random case.
func (v *Server) MixCase(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.caseBlind <= now
}

// CaseBlind notes that the server does not repeat letters as they came.
func (v *Server) CaseBlind(until Time) {
	v.mu.Lock()
	v.caseBlind = until
	v.mu.Unlock()
}

// NoTCP reports whether the server was not to be had over TCP when that was to show who it is.
func (v *Server) NoTCP(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.noTCP > now
}

// LacksTCP notes that.
func (v *Server) LacksTCP(until Time) {
	v.mu.Lock()
	v.noTCP = until
	v.mu.Unlock()
}

// SetLame notes that the server does not serve a zone; soft if it may answer all the same.
func (v *Server) SetLame(zone string, soft bool, until Time) {
	v.setLame(zone, lameness{until: until, soft: soft})
}

// SetResolver notes that the server answers for a zone, but not as an authority: that is lame, and soft.
func (v *Server) SetResolver(zone string, until Time) { v.setLame(zone, lameness{until, true, true}) }

func (v *Server) setLame(zone string, l lameness) {
	v.mu.Lock()
	v.lame = true
	v.mu.Unlock()
	v.all.lame.set(lameAt{v.Addr, zone}, l)
}

// Lame reports whether the server does not serve a zone.
func (v *Server) Lame(zone string, now Time) (lame, soft bool) {
	l := v.lameness(zone, now)
	return l.until != 0, l.soft
}

// Resolver reports whether the server answers for a zone, but not as an authority.
func (v *Server) Resolver(zone string, now Time) bool { return v.lameness(zone, now).resolver }

// lameness is what is known of the server and a zone now.
func (v *Server) lameness(zone string, now Time) (l lameness) {
	v.mu.Lock()
	some := v.lame
	v.mu.Unlock()
	if !some {
		return lameness{}
	}
	if l, _ = v.all.lame.get(lameAt{v.Addr, zone}); l.until <= now {
		return lameness{}
	}
	return l
}

// State is a word for metrics and dumps: unknown, alive, dead, plain.
func (v *Server) State(now Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.dead():
		return "dead"
	case !v.edns && v.plain > now:
		return "plain"
	case v.srtt == 0:
		return "unknown"
	}
	return "alive"
}

// Known is what there is to tell of a server.
type Known struct {
	State     string        // see State
	RTT       time.Duration // smoothed; 0 is unknown
	Timeouts  int           // since the last reply
	Bare      bool          // it is asked without options of EDNS
	CaseBlind bool          // and without letters of random case
	TCPOnly   bool          // it replies over TCP, but was silent over UDP (see Streams)
	Lame      []string      // zones that it does not serve, or not as an authority; sorted
}

// Known is what is known of v now.
func (v *Server) Known(now Time) Known {
	k := Known{State: v.State(now), TCPOnly: v.Streams(now)}
	v.mu.Lock()
	defer v.mu.Unlock()
	k.RTT, k.Timeouts, k.Bare, k.CaseBlind = v.srtt, v.losses, v.bare > now, v.caseBlind > now
	if v.lame {
		v.all.lame.removeIf(func(at lameAt, l lameness) bool {
			if at.server == v.Addr && l.until > now {
				k.Lame = append(k.Lame, at.zone)
			}
			return false
		})
	}
	slices.Sort(k.Lame)
	return k
}

// Find is the server at addr if something is known of it.
func (s *Servers) Find(addr netip.AddrPort) (v *Server, ok bool) { return s.shelf.get(addr) }
