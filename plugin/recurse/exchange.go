package recurse

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// peer is what a store.Server has for its exchanges.
type peer struct {
	to    *proxy.Peer
	proxy *proxy.Proxy
	under atomicCount // exchanges under way

	secure tlsSide
}

// flightKey is what exchanges are shared by: the zone whose servers are asked, and what they are asked.
type flightKey struct {
	zone     string
	question iterate.Question
	tcp      bool
	subnet   string
	only     netip.AddrPort // the server, if no other will do
}

// flight is one exchange, for all jobs that want it.
type flight struct {
	*resolver
	key    flightKey
	server *store.Server
	proxy  *proxy.Proxy
	x      proxy.Exchange
	query  []byte
	room   [96]byte // of query
	edns   bool
	cookie bool
	tcp    bool
	pause  time.Duration
	began  time.Time // for taps
	waits  time.Time // when it could not begin, until when it is tried again

	secure bool          // it is asked over TLS
	mix    bool          // what x is without that
	wait   time.Duration // as well

	load   *zoneLoad // guarded by the flights' lock, as joined is
	joined []party
	first  [1]party // of joined, most often all
}

// freeFlights are zero.
var freeFlights = sync.Pool{New: func() any { return new(flight) }}

// party is a job that waits for a flight, under the number that its Run gave the question.
type party struct {
	job *job
	ask int
}

// flights are those under way, with how many each zone has.
type flights struct {
	seed   maphash.Seed
	shards [16]flightShard
}

type flightShard struct {
	mu    sync.Mutex
	all   map[flightKey]*flight
	zones map[string]*zoneLoad
}

// zoneLoad is how many exchanges with a zone's servers are under way, and how many parties wait for them.
type zoneLoad struct{ flights, waits int }

func (f *flights) init() {
	f.seed = maphash.MakeSeed()
	for i := range f.shards {
		f.shards[i].all, f.shards[i].zones = map[flightKey]*flight{}, map[string]*zoneLoad{}
	}
}

// of is the shard of a zone's flights.
func (f *flights) of(zone string) *flightShard {
	return &f.shards[maphash.String(f.seed, zone)%uint64(len(f.shards))]
}

// send asks what a Run wants asked: by an exchange of its own, or together with others who want the same.
func (r *resolver) send(j *job, a iterate.Action, loop *eventloop.Loop) {
	k := flightKey{zone: a.Zone, question: a.Question, tcp: a.TCP, subnet: a.Subnet}
	if a.Only {
		k.only = a.Server.Addr
	}
	s := r.flights.of(a.Zone)
	s.mu.Lock()
	load := s.zones[a.Zone]
	if load == nil {
		load = new(zoneLoad)
	}
	if a.Zone != rrset.Root && load.waits >= max(r.maxRecursions/zoneShare, 1) {
		s.mu.Unlock()
		r.refuse(j, a, "zone")
		return
	}
	if f := s.all[k]; f != nil {
		f.joined = append(f.joined, party{j, a.Ask})
		load.waits++
		s.mu.Unlock()
		return
	}
	limit := r.fetchesPerZone
	if rrset.Labels(a.Zone) <= 1 {
		limit *= 10
	}
	p := a.Server.Peer.(*peer)
	if limit > 0 && load.flights >= limit || r.fetchesPerServer > 0 && p.under.n() >= r.fetchesPerServer {
		s.mu.Unlock()
		r.refuse(j, a, "fetches")
		return
	}
	f := freeFlights.Get().(*flight)
	f.resolver, f.key, f.server, f.edns, f.cookie, f.tcp = r, k, a.Server, a.EDNS, a.Cookie, a.TCP
	f.first[0] = party{j, a.Ask}
	f.joined, f.load = f.first[:], load
	s.all[k] = f
	if load.flights++; load.flights == 1 {
		s.zones[a.Zone] = load
	}
	load.waits++
	s.mu.Unlock()
	p.under.add(1)
	f.query = r.query(f.room[:0], a.Question, a.EDNS, a.Subnet)
	f.x.To, f.x.Stream, f.x.Timeout, f.x.Owner = p.to, a.TCP, a.Wait, f
	f.x.MixCase, f.x.Cookie, f.x.GivesWay, f.x.Since = a.MixCase, a.Cookie, j.place, j.began
	f.x.From = r.source(a.Server.Addr.Addr())
	f.x.Query = f.query
	if len(r.taps.load()) > 0 {
		f.began = time.Now()
	}
	if f.proxy = p.proxy; !a.TCP {
		f.proxy = r.proxies[maphash.String(r.flights.seed, a.Question.Name)%uint64(len(r.proxies))]
	}
	if r.secures(f, p) {
		f.beginSecure(p, loop)
		return
	}
	f.proxy.BeginIn(&f.x, loop)
}

// zoneShare is which part of the recursions may wait for the servers of one zone: a slow one leaves room for others.
const zoneShare = 4

// refuse tells j that what it wants asked is not, for a limit.
func (r *resolver) refuse(j *job, a iterate.Action, limit string) {
	r.counts.limit(limit)
	go j.event(iterate.Event{Kind: iterate.Failed, Ask: a.Ask, Unsent: true, Text: "too many queries for " + rrset.Text(a.Zone)}, nil)
}

// query appends a query to b: RD=0, CD=0, with DO if it has an OPT record, so that what comes serves all clients. subnet
// is the data of a client subnet option, empty for none.
func (r *resolver) query(b []byte, q iterate.Question, edns bool, subnet string) []byte {
	b = append(b, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	b = append(b, q.Name...)
	b = binary.BigEndian.AppendUint16(b, q.Type)
	b = binary.BigEndian.AppendUint16(b, wire.ClassIN)
	if !edns {
		return b
	}
	b[11] = 1
	b = append(b, 0, 0, wire.TypeOPT, byte(r.udpSize>>8), byte(r.udpSize), 0, 0, wire.OPTFlagDO>>8, 0, 0, 0)
	if subnet != "" {
		b[len(b)-1] = byte(4 + len(subnet))
		b = wire.AppendOption(b, wire.OptionECS, []byte(subnet))
	}
	return b
}

// Pauses of a query that could not begin as there are too many sockets: the first one, and the longest, as each is twice
// the one before. Thousands may wait so.
const (
	firstPause = 20 * time.Millisecond
	longPause  = 640 * time.Millisecond
)

// EndExchange implements proxy.Ender: it tells all jobs that joined.
func (f *flight) EndExchange(x *proxy.Exchange) {
	if f.secure && x.Err != proxy.ErrGaveWay {
		if !served(x) {
			f.inClear(x)
			return
		}
		f.server.Peer.(*peer).secure.misses.Store(0)
	}
	if errors.Is(x.Err, proxy.ErrBusy) && f.again() {
		return
	}
	if all := f.taps.load(); len(all) > 0 {
		f.tap(x, all)
	}
	ev := f.event(x)
	loop := x.Loop
	s := f.flights.of(f.key.zone)
	s.mu.Lock()
	delete(s.all, f.key)
	joined := f.joined
	f.load.waits -= len(joined)
	if f.load.flights--; f.load.flights == 0 {
		delete(s.zones, f.key.zone)
	}
	s.mu.Unlock()
	f.server.Peer.(*peer).under.add(-1)
	f.counts.ended(f, x, ev)
	f.debug(joined, x, &ev)
	for i, p := range joined {
		if x.Err == proxy.ErrGaveWay && (i == 0 || p.job.waitsLong()) && p.job.giveWay() {
			continue // those that have joined lately ask once more
		}
		ev.Ask, ev.Joined = p.ask, i > 0
		p.job.event(ev, loop)
	}
	*f = flight{}
	freeFlights.Put(f)
}

// again begins the exchange once more in a moment, unless that has gone on for too long.
func (f *flight) again() bool {
	now := time.Now()
	if f.waits.IsZero() {
		f.waits, f.pause = now.Add(f.timeout), firstPause
	}
	if now.After(f.waits) {
		return false
	}
	pause := f.pause/2 + rand.N(f.pause)
	f.pause = min(2*f.pause, longPause)
	time.AfterFunc(pause, func() { f.proxy.Begin(&f.x) })
	return true
}

// event is what a Run is told of the end of x.
func (f *flight) event(x *proxy.Exchange) iterate.Event {
	ev := iterate.Event{From: f.server, RTT: x.RTT, TCP: f.tcp || f.secure, TLS: f.secure, Doubted: x.Doubted, Folded: x.Folded}
	switch {
	case x.Err == nil:
		m, err := rrset.Parse(x.Reply)
		if err == nil {
			ev.Kind, ev.Reply = iterate.Replied, m
			return ev
		}
		ev.Kind, ev.Code, ev.Text = iterate.Failed, codeInvalid, err.Error()
	case errors.Is(x.Err, proxy.ErrMalformed):
		ev.Kind, ev.Code, ev.Text = iterate.Failed, codeInvalid, rrset.ErrMalformed.Error()
	case errors.Is(x.Err, os.ErrDeadlineExceeded), errors.Is(x.Err, proxy.ErrGaveWay):
		ev.Kind = iterate.TimedOut
	default:
		ev.Kind, ev.Code, ev.Text = iterate.Failed, codeNetwork, f.server.Addr.Addr().String()+": "+why(x.Err)
		ev.Forged, ev.Unsent = errors.Is(x.Err, proxy.ErrForged), !ev.TCP && unsent(x.Err)
	}
	return ev
}

// unsent reports whether err, which came of a question over UDP, is the system's, who did not send it: there is no
// descriptor or no way, or a firewall is in the way. What comes from outside is read.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op != "read"
}

const (
	codeNetwork = 23
	codeInvalid = 24
)

// why is what clients are told of an error.
func why(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, proxy.ErrMismatch):
		return "the reply does not match the query"
	case errors.Is(err, proxy.ErrForged):
		return "forged replies"
	case errors.Is(err, proxy.ErrBadCookie):
		return "it refuses its own cookies"
	case errors.Is(err, io.EOF), errors.Is(err, proxy.ErrCachedClosed):
		return "it closed the connection"
	}
	return "network error"
}

// peerOf makes what a new server has for its exchanges.
func (r *resolver) peerOf(addr netip.AddrPort) any {
	p := r.proxies[maphash.Comparable(r.flights.seed, addr)%uint64(len(r.proxies))]
	return &peer{to: p.NewPeer(addr), proxy: p, secure: r.encryption.side(addr.Addr())}
}
