package nomad

import (
	"context"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// key is a service in a namespace.
type key struct{ namespace, service string }

// catalogue is what is known of services. Those that have been asked for, and exist, are followed.
type catalogue struct {
	agents *agents
	filter string
	wait   time.Duration // of blocking queries
	unused time.Duration // after which a service is forgotten

	index atomic.Uint64 // the greatest one that was seen
	odd   log.Few       // lines about addresses that are none

	patience eventloop.Patience // with the agents

	mu      sync.Mutex
	entries map[key]*entry
	pending map[key]*inquiry
	stopped bool
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// entry is one service that is followed.
type entry struct {
	instances atomic.Pointer[[]instance]
	used      atomic.Int64  // when it was asked for last, in nanoseconds of Unix time
	index     atomic.Uint64 // at which it was as instances are, or later
}

// inquiry is a question about a service, for whose answer all queries for it wait. The answer is there when done is closed.
type inquiry struct {
	done chan struct{}
	all  []instance
	err  error
}

const (
	// maxFollowed is how many services are followed: each holds a connection, of which agents give 100 to one address.
	maxFollowed = 48
	// maxPending is how many inquiries there are at once: one goes on when the queries that it is for have given way.
	maxPending = 1024
	blockTime  = time.Minute
	unusedTime = 5 * time.Minute
	retryPause = time.Second
)

func newCatalogue(a *agents, filter string) *catalogue {
	ctx, cancel := context.WithCancel(context.Background())
	return &catalogue{agents: a, filter: filter, wait: blockTime, unused: unusedTime, ctx: ctx, cancel: cancel,
		entries: map[key]*entry{}, pending: map[key]*inquiry{}}
}

func (c *catalogue) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
}

// serial is a number that rises with every change that was seen.
func (c *catalogue) serial() uint32 { return uint32(c.index.Load()) }

// get is the instances of a service, none if it does not exist.
func (c *catalogue) get(ctx context.Context, k key) ([]instance, error) {
	e, r := c.find(k)
	if e != nil {
		e.used.Store(time.Now().UnixNano())
		return *e.instances.Load(), nil
	}
	in, done := c.patience.Wait(ctx)
	if r != nil {
		select {
		case <-r.done:
		case <-in.Done():
			return nil, done(in.Err())
		}
		if r.err == nil || c.ctx.Err() == nil {
			return r.all, done(r.err)
		}
	}
	// Nobody shares it, of a server that ends or where too many are pending.
	all, _, err := c.ask(in, k, 0)
	return all, done(err)
}

// find is what is known of a service, or the inquiry about it, which is made if there is none. When the catalogue has
// ended, or too many are pending, there may be neither.
func (c *catalogue) find(k key) (*entry, *inquiry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[k]; e != nil {
		return e, nil
	}
	r := c.pending[k]
	if r == nil && !c.stopped && len(c.pending) < maxPending {
		r = &inquiry{done: make(chan struct{})}
		c.pending[k] = r
		c.running.Go(func() { c.fulfil(k, r) })
	}
	return nil, r
}

// fulfil asks for the service that r is about.
func (c *catalogue) fulfil(k key, r *inquiry) {
	var index uint64
	r.all, index, r.err = c.ask(c.ctx, k, 0)
	if r.err == nil && len(r.all) > 0 && index > 0 {
		c.follow(k, newEntry(r.all, index, time.Now().UnixNano()), false)
	}
	c.mu.Lock()
	delete(c.pending, k)
	c.mu.Unlock()
	close(r.done)
}

// ask asks for a service; with an index, the answer comes when there is a later one, or after a while.
func (c *catalogue) ask(ctx context.Context, k key, index uint64) (all []instance, next uint64, err error) {
	query, each := url.Values{"namespace": {k.namespace}}, c.agents.each()
	if c.filter != "" {
		query.Set("filter", c.filter)
	}
	if index > 0 {
		query.Set("index", strconv.FormatUint(index, 10))
		query.Set("wait", c.wait.String())
		each = c.wait + c.wait/16 + requestTime // agents wait up to a sixteenth longer
	}
	next, err = c.agents.get(ctx, each, "/v1/service/"+url.PathEscape(k.service), query, &all)
	for i := range all {
		addr, bad := netip.ParseAddr(all[i].Address)
		if bad != nil && c.odd.May() {
			logger.Warningf("Service %s in %s: error parsing IP address: %v", k.service, k.namespace, bad)
		}
		all[i].addr = addr.Unmap()
	}
	c.see(next)
	return all, next, err
}

// see takes note of an index.
func (c *catalogue) see(index uint64) {
	for old := c.index.Load(); index > old && !c.index.CompareAndSwap(old, index); old = c.index.Load() {
	}
}

// newEntry is a service as it was at an index, that was asked for last at a time.
func newEntry(all []instance, index uint64, used int64) *entry {
	e := new(entry)
	e.instances.Store(&all)
	e.index.Store(index)
	e.used.Store(used)
	return e
}

// follow keeps a service up to date from now on, or after a pause, unless there are too many.
func (c *catalogue) follow(k key, e *entry, later bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.entries[k] != nil || len(c.entries) >= maxFollowed {
		return
	}
	c.entries[k] = e
	c.running.Go(func() {
		if later {
			c.pause()
		}
		c.run(k, e)
		c.mu.Lock()
		delete(c.entries, k)
		c.mu.Unlock()
	})
}

// pause waits a while, or until the catalogue ends.
func (c *catalogue) pause() {
	select {
	case <-c.ctx.Done():
	case <-time.After(retryPause):
	}
}

// run follows a service until it is gone, or nobody asks for it any more. While no agent answers, it stays as it was.
func (c *catalogue) run(k key, e *entry) {
	lost := false
	for time.Since(time.Unix(0, e.used.Load())) < c.unused {
		asked, index := time.Now(), e.index.Load()
		all, next, err := c.ask(c.ctx, k, index)
		switch {
		case c.ctx.Err() != nil:
			return
		case err != nil:
			if !lost {
				logger.Warningf("Following service %s in %s: %v", k.service, k.namespace, err)
			}
			lost = true
			c.pause()
			continue
		case len(all) == 0:
			return
		}
		if lost {
			logger.Infof("Following service %s in %s again", k.service, k.namespace)
		}
		lost = false
		e.instances.Store(&all)
		if next <= index && time.Since(asked) < min(c.wait, retryPause) {
			c.pause() // something between us and the agent answers at once
		}
		if next < index {
			next = 0 // the agents began anew
		}
		e.index.Store(max(next, 1))
	}
}
