package recurse

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/aggressive"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/localroot"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/steady"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// resolver is what all handlers of stanzas of equal text share: what was learned, what is under way, and the
// sockets. But for the parts with locks of their own it does not change once it has started.
type resolver struct {
	conf     iterate.Config
	specials specials
	counts   *counts
	began    time.Time

	timeout          time.Duration
	udpSize          uint16
	snoop            bool
	prefetch         bool
	fetchesPerZone   int
	fetchesPerServer int
	maxRecursions    int
	looked           looked
	memory           int64             // that the stores may take
	sources          [2][]netip.Addr   // of IPv4 and IPv6
	denials          *aggressive.Store // nil: none is made of others

	root       *localroot.Copy // nil: none is kept
	examiner   examiners
	proxies    []*proxy.Proxy
	jobs       jobs
	deadlines  deadlines
	clients    clients
	taps       taps
	flights    flights
	encryption encryption
	quit       chan struct{} // closed by stop
	priming    sync.Once     // for who asks whether it is ready
}

// atomicCount is a number that many change.
type atomicCount struct{ v atomic.Int64 }

func (c *atomicCount) add(n int64) { c.v.Add(n) }
func (c *atomicCount) n() int      { return int(c.v.Load()) }

// proxyShards is among how many proxies questions are distributed: each has a lock for what is under way on it.
const proxyShards = 8

// now is the time by which TTLs are judged.
func (r *resolver) now() store.Time {
	return store.Time(steady.Unix(time.Now())) + store.Time(clock.Offset())
}

// source is the address that a server is asked from, not valid for any.
func (r *resolver) source(server netip.Addr) netip.Addr {
	all := r.sources[0]
	if server.Is6() {
		all = r.sources[1]
	}
	if len(all) == 0 {
		return netip.Addr{}
	}
	return all[rand.IntN(len(all))]
}

// primeTime is how long a server that cannot prime the root is not ready.
const primeTime = 10 * time.Second

func (r *resolver) ready() bool {
	if r.conf.Shared.PrimedAt() != 0 || r.root != nil && r.root.Has() || time.Since(r.began) > primeTime {
		return true
	}
	r.priming.Do(func() { go r.own(jobKey{rrset.Root, wire.TypeNS, ""}) })
	return false
}

// start begins what goes on beside queries. Nothing is sent before somebody asks, be it for a name, or whether the
// resolver is ready: then the root is primed (RFC 9609).
func (r *resolver) start() {
	r.began, r.quit = time.Now(), make(chan struct{})
	clock.Moved()
	go r.tell()
	if r.root != nil {
		go r.runRoot()
	}
}

// own resolves a question that no client has asked, though it may be kept.
func (r *resolver) own(k jobKey) {
	r.newJob(k, true).start(nil)
}

// stop ends all that is under way.
func (r *resolver) stop() {
	close(r.quit)
	for _, p := range r.proxies {
		p.Stop()
	}
	r.encryption.stop()
}

var _ eventloop.Exchange = (*job)(nil)

// tellEvery is how often gauges are set, and ways are found.
const tellEvery = 5 * time.Second

// tell sets the gauges, and finds ways that come and go, until stop.
func (r *resolver) tell() {
	ticks := time.NewTicker(tellEvery)
	defer ticks.Stop()
	for {
		select {
		case <-r.quit:
			return
		case <-ticks.C:
			r.counts.show(r)
			r.findWays()
		}
	}
}
