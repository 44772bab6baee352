// Package file serves zones from master files (RFC 1035 §5).
//
//	setup ──▶ Zone: a file and what was read of it ──load──▶ zone.Zone, immutable
//	             │ reload                                        ▲
//	             └── a ticker looks at the file ──────────────── ┘ swapped by one pointer
//
//	query ──File──longest zone──▶ zone.Answerer ──▶ reply
//
// What a zone holds and how it answers is package zone's; this package knows the files, when
// they are read again, and which zone a query is for. Queries never wait for a reload.
// Start at File.ServeDNS.
package file

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var flog = log.NewWithPlugin("file")

type (
	// File is the plugin: it answers for its zones and passes all else on.
	File struct {
		Next  plugin.Handler
		Zones Zones
		Fall  fall.F

		index *index
	}

	// Zones is zones by their names, fully qualified and in lower case.
	Zones struct {
		Z     map[string]*Zone
		Names []string
	}
)

// index finds the zone of a name without looking at all. It is made of Zones when it is first needed.
type index struct {
	once  sync.Once
	zones wire.Suffixes[*Zone]
}

func (f *File) find(name []byte) *Zone {
	if f.index == nil { // a File that was put together by hand
		return f.Zones.Z[plugin.Zones(f.Zones.Names).Matches(wire.Text(name))]
	}
	f.index.once.Do(func() {
		for _, n := range f.Zones.Names {
			if w, err := wire.LowerName(n); err == nil {
				f.index.zones.Set(w, f.Zones.Z[n])
			}
		}
	})
	z, _ := f.index.zones.Longest(name)
	return z
}

// Name implements plugin.Handler.
func (f File) Name() string { return "file" }

// answerers holds what answering needs; it is some kilobytes.
var answerers = sync.Pool{New: func() any { return new(zone.Answerer) }}

// ServeDNS implements plugin.Handler.
func (f File) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	lane, err := plugin.NewLane(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer lane.Free()
	z, known := f.zoneOf(&lane.Query)
	if !known {
		if f.Next == nil {
			return dns.RcodeRefused, nil
		}
		return plugin.NextOrFailure(f.Name(), f.Next, ctx, w, r)
	}
	if r.Opcode == dns.OpcodeNotify {
		state := request.Request{Req: r, W: w}
		flog.Infof("Dropping notify from %s for %s", state.IP(), z.text())
		m := new(dns.Msg).SetRcode(r, dns.RcodeNotAuth)
		return dns.RcodeSuccess, w.WriteMsg(m)
	}
	if done := z.unfit(&lane.Reply, &lane.Query); done {
		return lane.Write()
	}
	a := answerers.Get().(*zone.Answerer)
	defer answerers.Put(a)
	result := a.Answer(z.live.Load(), &lane.Reply, &lane.Query)
	if result == zone.External {
		result = z.follow(ctx, a, lane, w, r)
	}
	if f.passesOn(result, &lane.Reply, &lane.Query) {
		return plugin.NextOrFailure(f.Name(), f.Next, ctx, w, r)
	}
	if wildcard := a.Wildcard(); wildcard != nil {
		text := wire.Text(wildcard)
		metadata.SetValueFunc(ctx, "zone/wildcard", func() string { return text })
	}
	decide(result, &lane.Reply)
	return lane.Write()
}

// ServeWire implements plugin.WireHandler.
func (f File) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	z, known := f.zoneOf(q)
	if !known {
		if f.Next == nil {
			w.Fail(dns.RcodeRefused, nil)
			return wire.Done
		}
		return plugin.NextWire(f.Name(), f.Next, ctx, w, q)
	}
	if z.unfit(w, q) {
		return wire.Done
	}
	a := answerers.Get().(*zone.Answerer)
	defer answerers.Put(a)
	result := a.Answer(z.live.Load(), w, q)
	if result == zone.External {
		return wire.Unpack
	}
	if f.passesOn(result, w, q) {
		return plugin.NextWire(f.Name(), f.Next, ctx, w, q)
	}
	decide(result, w)
	w.SetWriter(f.Name())
	return wire.Done
}

// WireSelf implements plugin.WireHandler.
func (f File) WireSelf() plugin.Handler { return f }

// zoneOf is the zone that a query is for. A zone may be known without there being one.
func (f *File) zoneOf(q *wire.Query) (z *Zone, known bool) {
	z = f.find(q.Lower())
	return z, z != nil
}

// unfit decides queries that no data is needed for: the zone was not loaded so far, or a
// transfer is asked for, which the transfer plugin would have taken.
func (z *Zone) unfit(w *wire.Reply, q *wire.Query) bool {
	switch {
	case z.live.Load() == nil:
		w.Fail(dns.RcodeServerFailure, nil)
	case q.Type() == wire.TypeAXFR || q.Type() == wire.TypeIXFR:
		w.Fail(dns.RcodeRefused, nil)
	default:
		return false
	}
	return true
}

// passesOn reports whether a name that does not exist here is one for the next plugin.
func (f *File) passesOn(r zone.Result, w *wire.Reply, q *wire.Query) bool {
	if r != zone.NXDomain && r != zone.Empty || w.Count(wire.Answer) > 0 || len(f.Fall.Zones) == 0 {
		return false
	}
	return f.Fall.Through(wire.Text(q.Lower()))
}

// decide turns a failure without data into one that the server answers; with the aliases that led
// to it, it is answered as it stands (RFC 6604).
func decide(r zone.Result, w *wire.Reply) {
	if r == zone.Broken && w.Count(wire.Answer) == 0 {
		w.Fail(dns.RcodeServerFailure, nil)
	}
}

// maxLoops is how often a question may come back here over aliases to other zones.
const maxLoops = 8

var lookups = upstream.New()

// follow looks up, by way of the whole server, where an alias leads out of the zone, and completes the reply.
func (z *Zone) follow(ctx context.Context, a *zone.Answerer, lane *plugin.Lane, w dns.ResponseWriter, r *dns.Msg) zone.Result {
	loops, _ := ctx.Value(dnsserver.LoopKey{}).(int)
	result, reply := zone.Broken, (*dns.Msg)(nil)
	if loops <= maxLoops {
		result = zone.Hit
		ctx = context.WithValue(ctx, dnsserver.LoopKey{}, loops+1)
		reply, _ = lookups.Lookup(ctx, request.Request{Req: r, W: w}, wire.Text(a.Target), lane.Query.Type())
	}
	if reply != nil {
		for _, rr := range reply.Answer {
			if err := lane.Reply.RR(wire.Answer, rr); err != nil {
				result = zone.Broken
			}
		}
		lane.Reply.SetFlag(wire.FlagTC, reply.Truncated)
		switch {
		case reply.Rcode == dns.RcodeNameError:
			result = zone.NXDomain
		case reply.Rcode == dns.RcodeServerFailure:
			result = zone.Broken
		case reply.Rcode == dns.RcodeSuccess && len(reply.Answer) == 0:
			result = zone.NoData
		}
	}
	a.End(result)
	return result
}

// Zone is a zone that is served from a file.
type Zone struct {
	origin []byte // lower, in wire form
	file   string
	reload reloadSettings

	live atomic.Pointer[zone.Zone] // nil until the file could be read

	stop chan struct{} // closed to end reloading
	done sync.WaitGroup
	seen stamp // of the file when it was read last; belongs to who loads
}

func (z *Zone) text() string { return wire.Text(z.origin) }
