// Package etcd answers from services that stand in etcd, in the layout of SkyDNS.
//
//	query ──▶ handler.go ──▶ functions of package plugin ──▶ Etcd.Services ──▶ records.go ──┬─▶ view.go: a copy in memory
//	                                                                                        └─▶ live.go: a request to etcd
//
// A name is a key: its labels, the last one first, below the path. What stands below a name belongs to it, too.
//
// Each query is a request (live.go), so that no answer lacks what has been written. If that is wanted, the plugin keeps
// a copy of what is below its path and follows the changes (view.go), and needs no request as soon as it has all been
// read, unless it is too large.
//
// Any number of goroutines may serve with one Etcd. Start at Etcd.ServeDNS.
package etcd

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

const pluginName = "etcd"

var logger = log.NewWithPlugin(pluginName)

// errKeyNotFound says that there is nothing at a name, nor below it.
var errKeyNotFound = errors.New("key not found")

// errLoop says that services lead to one another.
var errLoop = errors.New("too many aliases lead here again")

// errNotLetIn says that etcd has not checked the credentials yet.
var errNotLetIn = errors.New("not connected to etcd yet")

const (
	defaultPriority = 10
	defaultTTL      = 300 // seconds
	minTTL          = 30  // of SOA records, seconds
	requestTime     = 5 * time.Second
	revisionTime    = time.Second // for the serial, which is answered all the same
)

// Etcd is the plugin. Its fields are to be set before it serves.
type Etcd struct {
	Next plugin.Handler
	// Fall says which names that do not exist are passed on.
	Fall fall.F
	// Zones are fully qualified and in lower case.
	Zones []string
	// PathPrefix is the first part of all keys.
	PathPrefix string
	// Upstream resolves names that are not in the zones.
	Upstream *upstream.Upstream
	// Client asks etcd.
	Client *etcdcv3.Client
	// MinLeaseTTL and MaxLeaseTTL bound the TTLs that leases make, in seconds; 0 is the default.
	MinLeaseTTL, MaxLeaseTTL uint32

	late     atomic.Pointer[etcdcv3.Client] // instead of Client, once it has been let in
	view     *view                          // nil without one
	kin      string                         // see inherit
	login    login
	leases   leases
	warnOnce warnings
	lastRev  revision
	patience eventloop.Patience // with etcd

	zonesOnce sync.Once
	zoneNames wire.Suffixes[struct{}] // Zones in wire form
}

// Name is the plugin's name.
func (e *Etcd) Name() string { return pluginName }

// Ready reports whether there is a copy in memory, or there will be none. It implements ready.Readiness.
func (e *Etcd) Ready() bool { return e.view == nil || e.view.settled() }

// OnShutdown ends what belongs to e, and closes the client.
func (e *Etcd) OnShutdown() error {
	e.withdraw()
	if e.view != nil {
		e.view.stop()
	}
	if e.login.cancel != nil && e.late.Load() == nil {
		e.login.cancel()
		e.login.done.Wait()
	}
	if door := e.login.door.Load(); door != nil {
		door.Close()
	}
	if c := e.client(); c != nil {
		return c.Close()
	}
	return nil
}

// login is the attempts to be let in.
type login struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	tried  chan struct{}                  // closed once the first of them is over; nil if nobody has to be let in
	door   atomic.Pointer[etcdcv3.Client] // who logs in; see calm
}

// client is who asks etcd, nil if nobody has been let in yet.
func (e *Etcd) client() *etcdcv3.Client {
	if e.Client != nil {
		return e.Client
	}
	return e.late.Load()
}

// admitted is client, but waits for the first login, which takes etcd a tenth of a second of computing: queries that come
// at the start, and during a reload, would fail.
func (e *Etcd) admitted(ctx context.Context) *etcdcv3.Client {
	if c := e.client(); c != nil || e.login.tried == nil {
		return c
	}
	select {
	case <-e.login.tried:
	case <-ctx.Done():
	}
	return e.client()
}

// Services implements plugin.ServiceBackend.
func (e *Etcd) Services(ctx context.Context, state request.Request, exact bool, _ plugin.Options) ([]msg.Service, error) {
	services, err := e.Records(ctx, state, exact)
	if err != nil {
		return nil, err
	}
	return msg.Group(services), nil
}

// Reverse implements plugin.ServiceBackend: a reverse name is a key like any other.
func (e *Etcd) Reverse(ctx context.Context, state request.Request, exact bool, opt plugin.Options) ([]msg.Service, error) {
	return e.Services(ctx, state, exact, opt)
}

// Lookup implements plugin.ServiceBackend.
func (e *Etcd) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	ctx, ok := upstream.Again(ctx, upstream.MaxLoops)
	if !ok {
		return nil, errLoop
	}
	return e.Upstream.Lookup(ctx, state, name, typ)
}

// IsNameError implements plugin.ServiceBackend.
func (e *Etcd) IsNameError(err error) bool { return errors.Is(err, errKeyNotFound) }

// Serial implements plugin.ServiceBackend: it is the last revision of etcd that was seen, which rises with every change.
func (e *Etcd) Serial(request.Request) uint32 { return uint32(e.lastRev.get()) }

// MinTTL implements plugin.ServiceBackend.
func (e *Etcd) MinTTL(request.Request) uint32 { return minTTL }

// revision is the greatest one of some.
type revision struct {
	mu sync.Mutex
	n  int64
}

func (r *revision) see(n int64) {
	r.mu.Lock()
	r.n = max(r.n, n)
	r.mu.Unlock()
}

func (r *revision) get() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// warnings lets each text through once a minute, and so many of them.
type warnings struct {
	mu   sync.Mutex
	last map[string]time.Time
	full time.Time // until then, nothing in last is old
}

const (
	warnPause = time.Minute
	maxTexts  = 1000
)

func (w *warnings) due(text string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.last[text]) < warnPause {
		return false
	}
	if len(w.last) >= maxTexts && !now.Before(w.full) { // it is gone through once, not for each of a flood
		w.full = now.Add(warnPause)
		maps.DeleteFunc(w.last, func(_ string, last time.Time) bool {
			old := now.Sub(last) >= warnPause
			if again := last.Add(warnPause); !old && again.Before(w.full) {
				w.full = again
			}
			return old
		})
	}
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	if len(w.last) >= maxTexts { // more would be a flood
		return false
	}
	w.last[text] = now
	return true
}
