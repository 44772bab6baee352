package kubernetes

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// ModifiedMode names one of the times at which something changed last.
type ModifiedMode int

// The changes that are told apart.
const (
	ModifiedInternal     ModifiedMode = iota // of the cluster's own zones
	ModifiedExternal                         // of addresses that are reached from outside
	ModifiedMultiCluster                     // of imported services
)

// dnsController is the connection to the API.
type dnsController interface {
	// Stop ends following the API. A second call is an error.
	Stop() error
	// HasSynced reports whether all there is has been read once.
	HasSynced() bool
	// PodIndex returns the pods that have the address, which are known only with "pods verified".
	PodIndex(ip string) []*object.Pod
	// Modified returns the zone's serial, a unix time: see package store.
	Modified(ModifiedMode) int64
}

// controller is the dnsController that InitKubeCache makes: a store, of which it hands out converted objects.
type controller struct {
	*store.Store
	zones  []string                    // that are answered for; never changed
	kin    string                      // see kin; set before start
	legacy atomic.Pointer[store.Store] // see inherit

	wait sync.WaitGroup // for what inherit began

	mu       sync.Mutex
	shutdown bool
	stopped  chan struct{} // closed by Stop; made by inherit
}

// start begins to follow the API, unless Stop was called before.
func (c *controller) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shutdown {
		c.Store.Start()
		watched.add(c.Store)
	}
}

var errShutdown = errors.New("shutdown already in progress")

// Stop implements dnsController. Answers go on from what is known.
func (c *controller) Stop() error {
	c.mu.Lock()
	was := c.shutdown
	c.shutdown = true
	if c.stopped != nil && !was {
		close(c.stopped)
	}
	c.mu.Unlock()
	if was {
		return errShutdown
	}
	c.withdraw()
	c.Store.Stop()
	c.wait.Wait()
	watched.remove(c.Store)
	return nil
}

// HasSynced implements dnsController.
func (c *controller) HasSynced() bool {
	_, complete := c.known()
	return complete
}

// Modified implements dnsController.
func (c *controller) Modified(mode ModifiedMode) int64 {
	s, _ := c.known()
	switch mode {
	case ModifiedExternal:
		return int64(s.Serial(store.External))
	case ModifiedMultiCluster:
		return int64(s.Serial(store.Multicluster))
	}
	return int64(s.Serial(store.Internal))
}

// PodIndex implements dnsController.
func (c *controller) PodIndex(ip string) (all []*object.Pod) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	s, _ := c.known()
	pods := s.Pods(addr)
	for p := pods.Next(); p != nil; p = pods.Next() {
		all = append(all, podObject(p))
	}
	return all
}

func podObject(p *store.Pod) *object.Pod {
	o := &object.Pod{Name: p.Name(), Namespace: p.Namespace()}
	for _, a := range p.IPs() {
		o.PodIPs = append(o.PodIPs, a.String())
	}
	if len(o.PodIPs) > 0 {
		o.PodIP = o.PodIPs[0]
	}
	for _, l := range p.Labels() {
		if o.Labels == nil {
			o.Labels = make(map[string]string, len(p.Labels()))
		}
		o.Labels[strings.Clone(l.Key)] = l.Value
	}
	return o
}

// empty stands in for the store of a Kubernetes that has none.
var empty = store.New(store.Config{}, nil)

// data returns what is known of the cluster, and whether that is all there is.
func (k *Kubernetes) data() (s *store.Store, synced bool) {
	switch c := k.APIConn.(type) {
	case nil:
		return empty, false
	case *controller:
		return c.known()
	default:
		return empty, c.HasSynced()
	}
}
