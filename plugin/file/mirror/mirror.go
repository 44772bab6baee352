// Package mirror answers from zones that a provider's API has: it reads them now and then, and keeps what it read last.
//
//	Fetch, of the plugin for a provider ──records──▶ zone.Zone ──swapped──▶ file.Zone ──file.Link──▶ reply
//
// Several hosted zones may have one name, such as a public and a private one. They are asked in their order, until one has the
// name. A zone that cannot be read stays as it was. Queries never wait for the provider, and both lanes are served.
//
// Any number of goroutines may serve with one Mirror. Start at Mirror.Run.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/held"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Hosted is a zone as a provider has it.
type Hosted struct {
	Zone string // its name, fully qualified and in lower case
	ID   string // what the provider calls it
}

// Fetch returns the records of a hosted zone. Those that cannot be served are left out, with a warning.
type Fetch func(ctx context.Context, h Hosted, warn Warn) ([]dns.RR, error)

// Config says what is mirrored. It does not change.
type Config struct {
	Plugin  string // the plugin's name
	Hosted  []Hosted
	Fetch   Fetch
	Refresh time.Duration
	// Next and Fall are asked at each query, so that they may be set later.
	Next func() plugin.Handler
	Fall func() fall.F
}

// Mirror is the zones of one plugin.
type Mirror struct {
	Config
	logger log.P
	zones  []*hosted
	groups wire.Suffixes[[]*hosted] // by name, in their order
	byName map[string][]*hosted
	loaded bool // all of them, once; guarded by mu
	begun  bool // Run was called, and End was not; guarded by mu
	mu     sync.Mutex
	done   sync.WaitGroup
	due    atomic.Int64 // when the zones are read next, in nanoseconds of Unix time; 0 before Run

	readTime time.Duration // how long a zone may take after the first time
}

// hosted is one zone, with what is known of it.
type hosted struct {
	Hosted
	zone     *file.Zone
	warnings *warnings
	aliases  atomic.Bool // it has aliases to names outside of it

	mu       sync.Mutex // of who replaces the zone
	numbered bool       // its serials are ours
}

var lastSuccess = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
	Namespace: plugin.Namespace, Subsystem: "mirror", Name: "last_success_timestamp_seconds",
	Help: "When a hosted zone was read last.",
}, []string{"plugin", "zone", "id"}))

const (
	// firstTime is how long the first reading of one zone may take. There may be hundreds of zones, and providers let
	// nobody ask more than a few times a second, so all of them may take much longer.
	firstTime = time.Minute
	// readTime is how long the reading of one zone may take later. A provider that takes a question and never answers
	// would else be waited for until the server ends, and no zone would be read again.
	readTime = 5 * time.Minute
)

// IsZone reports whether text can be the name of a zone: New takes no other ones.
func IsZone(text string) bool {
	_, err := wire.LowerName(plugin.Name(text).Normalize())
	return text != "" && err == nil
}

// New is a Mirror that has not read anything yet. A zone whose name is none is an error.
func New(c Config) (*Mirror, error) {
	m := &Mirror{Config: c, logger: log.NewWithPlugin(c.Plugin), byName: map[string][]*hosted{}, readTime: readTime}
	for _, h := range c.Hosted {
		name, err := wire.LowerName(h.Zone)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", h.Zone, err)
		}
		h.Zone = wire.Text(name)
		z := &hosted{Hosted: h, zone: file.NewZone(h.Zone, ""), warnings: newWarnings(m.logger)}
		z.zone.Upstream = upstream.New()
		m.zones = append(m.zones, z)
		m.byName[h.Zone] = append(m.byName[h.Zone], z)
		m.groups.Set(name, m.byName[h.Zone])
	}
	return m, nil
}

// Run reads all zones, and then again and again until ctx ends. An error is one of the first time.
func (m *Mirror) Run(ctx context.Context) error {
	m.hold()
	for _, z := range m.zones {
		if err := m.update(ctx, z, firstTime); err != nil { // an API that never answers would be asked for each zone in turn
			m.End()
			return err
		}
	}
	m.mu.Lock()
	m.loaded = true
	m.mu.Unlock()
	m.done.Go(func() { m.run(ctx) })
	return nil
}

// hold says that m tells of its zones from now on.
func (m *Mirror) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
	for _, z := range m.zones {
		lastSuccess.Hold(m.Plugin, z.Zone, z.ID)
	}
}

// End waits until Run's goroutine has ended, after its context has. Nothing is told of the zones any more.
func (m *Mirror) End() {
	m.done.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun {
		return
	}
	m.begun = false
	for _, z := range m.zones {
		lastSuccess.Release(m.Plugin, z.Zone, z.ID)
	}
}

func (m *Mirror) run(ctx context.Context) {
	pause := m.Refresh
	for {
		pause += rand.N(pause/10 + 1) // so that not all servers ask at once
		m.due.Store(time.Now().Add(pause).UnixNano())
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			m.logger.Debugf("Breaking out of %s update loop for %v: %v", m.Plugin, m.names(), ctx.Err())
			return
		case <-timer.C:
		}
		pause = m.Refresh
		if err := m.updateAll(ctx); err != nil && ctx.Err() == nil {
			m.logger.Errorf("Failed to update zones %v: %s", m.names(), log.OneLine(err))
			pause *= 2 // they may want to be left alone
		}
	}
}

func (m *Mirror) names() (all []string) {
	for _, z := range m.zones {
		all = append(all, z.Zone)
	}
	return all
}

// updateAll reads all zones. One that fails stays as it was.
func (m *Mirror) updateAll(ctx context.Context) error {
	var errs []error
	for _, z := range m.zones {
		errs = append(errs, m.update(ctx, z, m.readTime))
	}
	return errors.Join(errs...)
}

// update reads one zone, which may take as long as is given.
func (m *Mirror) update(ctx context.Context, z *hosted, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	err := m.read(ctx, z)
	if err != nil {
		err = Brief(err)
	}
	z.zone.Looked(err)
	if err != nil {
		return fmt.Errorf("%s (%s): %w", z.Zone, z.ID, err)
	}
	lastSuccess.WithLabelValues(m.Plugin, z.Zone, z.ID).SetToCurrentTime()
	return nil
}

func (m *Mirror) read(ctx context.Context, z *hosted) (err error) {
	defer func() { z.warnings.end(err == nil) }()
	records, err := m.Fetch(ctx, z.Hosted, z.warnings.warn)
	if err != nil {
		return err
	}
	origin, err := wire.LowerName(z.Zone)
	if err != nil {
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	old := z.zone.Current()
	v, err := z.version(origin, records, old, time.Now())
	if err != nil || v == old {
		return err
	}
	if aliased(records) { // at no time later than the zone has them
		z.aliases.Store(true)
	}
	z.zone.Replace(v)
	return nil
}

// identical reports whether two versions have the same records, as far as that can be told cheaply.
func identical(a, b *zone.Zone) bool {
	if a.Serial() != b.Serial() || a.Records() != b.Records() {
		return false
	}
	d, ok := zone.Diff(a, b, 1<<20)
	return ok && !d.Changes()
}

// Ready reports whether all zones have been read. It implements ready.Readiness.
func (m *Mirror) Ready() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loaded
}

// link is the place in the chain of zone i of a group: what it does not have is the next one's, and behind the last the next plugin's.
func (m *Mirror) link(group []*hosted, i int) file.Link {
	if i == len(group)-1 {
		return file.Link{Name: m.Plugin, Next: m.Next(), Fall: m.Fall()}
	}
	l := file.Link{Name: m.Plugin, Next: &rest{m, group, i + 1}}
	l.Fall.SetZonesFromArgs([]string{group[i].Zone})
	return l
}

// rest is the zones of a group from one on, as a handler.
type rest struct {
	*Mirror
	group []*hosted
	i     int
}

func (r *rest) Name() string { return r.Plugin }

// ServeDNS implements plugin.Handler.
func (r *rest) ServeDNS(ctx context.Context, w dns.ResponseWriter, q *dns.Msg) (int, error) {
	return r.serve(ctx, w, q, r.group, r.i)
}

// ServeWire implements plugin.WireHandler.
func (r *rest) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return r.serveWire(ctx, w, q, r.group, r.i)
}

// WireSelf implements plugin.WireHandler.
func (r *rest) WireSelf() plugin.Handler { return r }

// ServeDNS answers for names in the zones, and passes other queries on.
func (m *Mirror) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	group, ok := m.groups.Longest(adapter.Query.Lower())
	adapter.Free()
	if !ok {
		return plugin.NextOrFailure(m.Plugin, m.Next(), ctx, w, r)
	}
	return m.serve(ctx, w, r, group, 0)
}

func (m *Mirror) serve(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, group []*hosted, i int) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer adapter.Free()
	if way, ok := group[i].alias(&adapter.Query, r); ok {
		switch reply, err := group[i].follow(ctx, w, r, way); {
		case err != nil:
			return dns.RcodeServerFailure, plugin.Error(m.Plugin, err)
		case reply != nil:
			return dns.RcodeSuccess, w.WriteMsg(reply)
		}
	}
	return m.link(group, i).ServeDNS(ctx, adapter, group[i].zone, true, w, r)
}

// serveWire is serve for the wire lane. Where aliases lead is looked up in the message lane.
func (m *Mirror) serveWire(ctx context.Context, w *wire.Reply, q *wire.Query, group []*hosted, i int) wire.Outcome {
	if _, ok := group[i].alias(q, nil); ok {
		return wire.Unpack
	}
	return m.link(group, i).ServeWire(ctx, group[i].zone, true, w, q)
}

// ServeWire does the same as ServeDNS.
func (m *Mirror) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	group, ok := m.groups.Longest(q.Lower())
	if !ok {
		return plugin.NextWire(m.Plugin, m.Next(), ctx, w, q)
	}
	return m.serveWire(ctx, w, q, group, 0)
}

// Transfer implements transfer.Transferer. Of several zones with one name the first is transferred.
func (m *Mirror) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	group := m.byName[name]
	if len(group) == 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	return group[0].zone.Transfer(serial)
}

// Version implements transfer.Source.
func (m *Mirror) Version(name string) (*zone.Zone, error) {
	group := m.byName[name]
	if len(group) == 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	return group[0].zone.Sendable()
}
