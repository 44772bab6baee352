// Package store holds of a cluster what DNS answers from, compactly and without locks for readers.
//
//	API ──client.Watch──▶ reflector ──lean objects──▶ services, slices, namespaces, pods, imports
//	                      (one a resource)             one writer each, many readers
//	                                                    │
//	        Service, Slices, ServiceByIP, Pods … ◀──────┘  records that never change
//
// A record is built whole and then put into the tables that lead to it; it is replaced, never
// changed. So a reader may keep what he got for as long as he likes. He sees each
// change of one object as a whole, and no order between changes of different objects.
//
// Whatever becomes of the API, what is known stays: data goes only when the API says so,
// or at the end of a list that no longer has it. Nothing here knows DNS; names
// are given as lower-case labels.
//
// Start at New and the lookups in lookup.go. A record's file (service.go, slice.go, pod.go,
// namespace.go) has its form and its writer; reflector.go follows the API, table.go finds records.
package store

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
	"github.com/coredns/coredns/plugin/pkg/memory"
)

// Config says what is kept of which objects.
type Config struct {
	// Namespaces are the names of those that are exposed; nil means all.
	Namespaces []string
	// NamespaceLabels selects the namespaces that are exposed. Labels selects services,
	// imports, slices and pods. Both are label selectors as the API takes them.
	NamespaceLabels, Labels string

	Endpoints    bool // keep endpoints of services
	Pods         bool // keep pods
	Multicluster bool // keep imported services and their endpoints

	PodNames  bool // keep the names of the pods behind endpoints
	Nodes     bool // keep the nodes of endpoints
	Zones     bool // keep the zones of endpoints
	PodLabels bool // keep the labels of pods

	// Log is told of a lost API and the like; nil: nobody is.
	Log Logger
	// Latency, if set, is told how long a change of a service's endpoints took to
	// arrive. It is called by the writer of slices and must return soon.
	Latency func(headless bool, d time.Duration)
}

// Logger is where the store writes lines; plugin/pkg/log.P is one.
type Logger interface {
	Infof(format string, v ...any)
	Warningf(format string, v ...any)
	Errorf(format string, v ...any)
}

// Store is what is known of the cluster. Its lookups are safe for concurrent use.
type Store struct {
	config     Config
	exposed    map[string]struct{} // Config.Namespaces; never changes
	services   serviceWriter
	slices     sliceWriter
	namespaces namespaceWriter
	pods       podWriter
	imports    importWriter
	serials    *[3]serial    // see GoOn
	outside    atomic.Bool   // see PublishEndpoints
	generation atomic.Uint64 // changes so far
	stats      stats

	unsynced atomic.Int32 // kinds that have not been read yet
	synced   chan struct{}
	reflect  []*reflector

	stop context.CancelFunc // ends the goroutines of Start
	wait sync.WaitGroup
}

// New makes an empty store. If c is nil, it is filled by Put and Delete alone.
func New(config Config, c *client.Client) *Store {
	s := &Store{config: config, serials: new([3]serial), synced: make(chan struct{}), stop: func() {}}
	if config.Namespaces != nil {
		s.exposed = make(map[string]struct{}, len(config.Namespaces))
		for _, ns := range config.Namespaces {
			s.exposed[ns] = struct{}{}
		}
	}
	if s.config.Log == nil {
		s.config.Log = silent{}
	}
	s.services.init(s)
	s.slices.init(s)
	s.namespaces.init(s)
	s.pods.init(s)
	s.imports.init(s)
	link := newLink(s.config.Log)
	for _, k := range s.kinds() {
		s.reflect = append(s.reflect, newReflector(k, c, link, s))
	}
	s.unsynced.Store(int32(len(s.reflect)))
	return s
}

// podFields leaves out pods that no longer own their addresses.
const podFields = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown"

// kinds returns what is watched.
func (s *Store) kinds() []watched {
	all := []watched{
		{client.Services, s.config.Labels, "", &s.services},
		{client.Namespaces, s.config.NamespaceLabels, "", &s.namespaces},
	}
	switch {
	case s.config.Endpoints:
		all = append(all, watched{client.EndpointSlices, s.config.Labels, "", &s.slices})
	case s.config.Multicluster: // those of imported services alone
		all = append(all, watched{client.EndpointSlices, and(s.config.Labels, lean.LabelMCService), "", &s.slices})
	}
	if s.config.Pods {
		all = append(all, watched{client.Pods, s.config.Labels, podFields, &s.pods})
	}
	if s.config.Multicluster {
		all = append(all, watched{client.ServiceImports, s.config.Labels, "", &s.imports})
	}
	return all
}

// and joins two selectors.
func and(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}

// KeepPodLabels sets Config.PodLabels, before Start.
func (s *Store) KeepPodLabels() { s.config.PodLabels = true }

// PublishEndpoints says that endpoints are published outside, too: what concerns the zone Internal concerns External.
func (s *Store) PublishEndpoints() { s.outside.Store(true) }

// Start begins to follow the API. It returns at once; see Synced.
func (s *Store) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	for _, r := range s.reflect {
		s.wait.Go(func() { r.run(ctx) })
	}
	s.wait.Go(func() {
		select {
		case <-s.synced:
			// Reading the lists left behind several times what is kept of them.
			debug.FreeOSMemory()
			memory.Settle()
		case <-ctx.Done():
		}
	})
}

// Stop ends what Start began and waits for it. What is known stays.
func (s *Store) Stop() {
	s.stop()
	s.wait.Wait()
}

// Synced is closed once all there is has been read for the first time.
func (s *Store) Synced() <-chan struct{} { return s.synced }

// HasSynced reports whether all there is has been read once. It stays so.
func (s *Store) HasSynced() bool { return s.unsynced.Load() == 0 }

// kindSynced is called once by each reflector.
func (s *Store) kindSynced() {
	if s.unsynced.Add(-1) == 0 {
		close(s.synced)
	}
}

// Put takes in an object as if the API had told of it, Delete takes it out. They are for stores
// without a client, and for one goroutine at a time. The store keeps nothing of obj.
func (s *Store) Put(obj lean.Object) {
	switch o := obj.(type) {
	case *lean.Service:
		s.services.put(o, true)
	case *lean.EndpointSlice:
		s.slices.put(o, true)
	case *lean.Namespace:
		s.namespaces.put(o, true)
	case *lean.Pod:
		s.pods.put(o, true)
	case *lean.ServiceImport:
		s.imports.put(o, true)
	}
}

// Delete is the opposite of Put. Only the object's name and namespace count.
func (s *Store) Delete(obj lean.Object) {
	m := obj.Metadata()
	switch obj.(type) {
	case *lean.Service:
		s.services.drop(m)
	case *lean.EndpointSlice:
		s.slices.drop(m)
	case *lean.Namespace:
		s.namespaces.drop(m)
	case *lean.Pod:
		s.pods.drop(m)
	case *lean.ServiceImport:
		s.imports.drop(m)
	}
}

// PutDone says that a store without a client has been filled: HasSynced becomes true.
func (s *Store) PutDone() {
	if s.unsynced.Swap(0) > 0 {
		close(s.synced)
	}
}

type silent struct{}

func (silent) Infof(string, ...any)    {}
func (silent) Warningf(string, ...any) {}
func (silent) Errorf(string, ...any)   {}
