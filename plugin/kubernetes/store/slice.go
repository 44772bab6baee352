package store

import (
	"bytes"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// Slice is a part of the ready endpoints of a service: those that have the same ports. It never changes.
//
// There may be a hundred thousand endpoints, so each takes 32 bytes without a pointer; its
// texts are parts of one string.
type Slice struct {
	namespace string
	text      string
	ends      []end
	ports     []Port // shared by all slices that have the same

	name              part
	service           part // the service it belongs to
	imported, cluster part // the imported service it belongs to, and in which cluster it is
	seen              uint32
	ref               *sliceRef // of all versions of the slice
}

// end is an endpoint as it is kept.
type end struct {
	addr                         [16]byte // IPv4 as in RFC 4291 §2.5.5.2
	hostname, target, node, zone part
}

// part is a part of a slice's text: where it begins, and in the low byte its length. Names of the API are
// no longer than 253 bytes.
type part uint32

const maxPart = 255

func (p part) of(text string) string { return text[p>>8:][:p&maxPart] }

// Endpoint is one address of a ready endpoint. What is not kept (see Config) is empty.
type Endpoint struct {
	Addr     netip.Addr
	Hostname string
	Target   string // the name of its pod in lower case, if that can be a label
	Node     string
	Zone     string // lower case
}

// Namespace returns the namespace of the slice and its service.
func (s *Slice) Namespace() string { return s.namespace }

// Service returns the name of the slice's service, empty if it has none in this cluster.
func (s *Slice) Service() string { return s.service.of(s.text) }

// Import returns the name of the imported service that the slice belongs to and
// the name of the cluster that it comes from. Both may be empty.
func (s *Slice) Import() (service, cluster string) {
	return s.imported.of(s.text), s.cluster.of(s.text)
}

// Ports returns the ports of the slice's endpoints, none if they have none.
func (s *Slice) Ports() []Port { return s.ports }

// Len returns the number of endpoints.
func (s *Slice) Len() int { return len(s.ends) }

// endpoints is all endpoints of s, which may be nil.
func (s *Slice) endpoints() []end {
	if s == nil {
		return nil
	}
	return s.ends
}

// Addr returns the address of endpoint i.
func (s *Slice) Addr(i int) netip.Addr { return netip.AddrFrom16(s.ends[i].addr).Unmap() }

// Endpoint returns endpoint i.
func (s *Slice) Endpoint(i int) Endpoint {
	e := &s.ends[i]
	return Endpoint{
		Addr:     netip.AddrFrom16(e.addr).Unmap(),
		Hostname: e.hostname.of(s.text),
		Target:   e.target.of(s.text),
		Node:     e.node.of(s.text),
		Zone:     e.zone.of(s.text),
	}
}

// Find returns the first endpoint from i on that has the address, or -1.
func (s *Slice) Find(a netip.Addr, i int) int { return s.find(a.As16(), i) }

func (s *Slice) find(a [16]byte, i int) int {
	for ; i < len(s.ends); i++ {
		if s.ends[i].addr == a {
			return i
		}
	}
	return -1
}

// sliceWriter is the writer of slices and the tables that lead to them.
type sliceWriter struct {
	store   *Store
	scratch lean.EndpointSlice
	intern  interner
	round   uint32
	text    []byte // of the record being built
	common  sharedText
	ends    []end

	had, has addrSet // of what goes, and of what comes

	byName, byService, byImport table[Slice]
	byIP                        table[sliceRef]
}

func (w *sliceWriter) init(s *Store) {
	w.store, w.round = s, 1
	id := func(s *Slice) uint64 { return hashNameString(s.namespace, s.name.of(s.text)) }
	w.byService.id, w.byImport.id = id, id
	w.byIP.id = func(r *sliceRef) uint64 { return id(r.now.Load()) }
}

func (w *sliceWriter) object() lean.Object { return &w.scratch }

func (w *sliceWriter) begin() { w.round++ }

func (w *sliceWriter) putScratch(live bool) { w.put(&w.scratch, live) }

// put takes in a slice; live means that the change happened just now.
func (w *sliceWriter) put(o *lean.EndpointSlice, live bool) {
	hash := hashName(o.Meta.Namespace, o.Meta.Name)
	old := w.lookup(hash, &o.Meta)
	next := w.build(o)
	if old != nil && w.same(old, &next) {
		old.seen = w.round
	} else {
		w.replace(hash, old, w.keep(next))
	}
	if live {
		w.measure(o)
	}
}

// build makes a record in the writer's buffers.
func (w *sliceWriter) build(o *lean.EndpointSlice) Slice {
	config := &w.store.config
	w.text, w.ends = w.text[:0], w.ends[:0]
	w.common.begin()
	s := Slice{ports: w.intern.portSet(o.Ports), seen: w.round, namespace: w.intern.text(o.Meta.Namespace)}
	s.name = w.part(o.Meta.Name)
	if config.Endpoints {
		s.service = w.part(o.Meta.Label(lean.LabelService))
	}
	if config.Multicluster {
		s.imported = w.part(o.Meta.Label(lean.LabelMCService))
		s.cluster = w.part(lower(o.Meta.Label(lean.LabelMCCluster)))
	}
	for i := range o.Endpoints {
		from := &o.Endpoints[i]
		e := end{addr: from.Addr.As16()}
		if len(from.Hostname) <= maxLabel {
			e.hostname = w.part(from.Hostname)
		}
		if config.PodNames {
			e.target = w.part(podLabel(from.Target))
		}
		if config.Nodes {
			e.node = w.shared(from.Node)
		}
		if config.Zones {
			e.zone = w.shared(lower(from.Zone))
		}
		w.ends = append(w.ends, e)
	}
	return s
}

// maxLabel is how long a label of a domain name may be (RFC 1035 §2.3.4).
const maxLabel = 63

// podLabel is the name of a pod as a label, in lower case; nil unless it is made of letters, digits and hyphens. An API takes
// any text for the name of what an endpoint points at.
func podLabel(b []byte) []byte {
	if len(b) > maxLabel {
		return nil
	}
	b = lower(b)
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return nil
		}
	}
	return b
}

// isLabel tells whether b can be a label.
func isLabel(b []byte) bool { return len(b) > 0 && len(b) <= maxLabel }

// part adds b to the text.
func (w *sliceWriter) part(b []byte) part {
	if len(b) == 0 || len(b) > maxPart {
		return 0
	}
	w.text = append(w.text, b...)
	return part((len(w.text)-len(b))<<8 | len(b))
}

// shared is part for what other endpoints are likely to have, too.
func (w *sliceWriter) shared(b []byte) part {
	if len(b) == 0 || len(b) > maxPart {
		return 0
	}
	slot := w.common.find(w.text, b)
	if *slot != 0 {
		return *slot
	}
	p := w.part(b)
	w.common.add(slot, w.text, p)
	return p
}

// lower is b in lower case: b itself, if it has nothing else.
func lower(b []byte) []byte {
	for _, c := range b {
		if c >= 'A' && c <= 'Z' || c >= 0x80 {
			return bytes.ToLower(b)
		}
	}
	return b
}

// same tells whether the record in the buffers is the same as old, text and all.
func (w *sliceWriter) same(old, next *Slice) bool {
	return old.text == string(w.text) && slices.Equal(old.ends, w.ends) && slices.Equal(old.ports, next.ports) &&
		old.name == next.name && old.service == next.service && old.imported == next.imported && old.cluster == next.cluster
}

// keep gives the record memory of its own.
func (w *sliceWriter) keep(s Slice) *Slice {
	s.text = string(w.text)
	s.ends = slices.Clip(slices.Clone(w.ends))
	return &s
}

// replace puts next in the place of old; either may be nil.
func (w *sliceWriter) replace(hash uint64, old, next *Slice) {
	w.reindex(&w.byName, hash, hash, old, next)
	w.reindex(&w.byService, old.serviceHash(), next.serviceHash(), old, next)
	w.reindex(&w.byImport, old.importHash(), next.importHash(), old, next)
	w.reindexAddrs(old, next)
	w.store.changed(Internal)
	if old.importHash() != 0 || next.importHash() != 0 {
		w.store.changed(Multicluster)
	}
}

// serviceHash returns the hash of the service that the slice belongs to, 0 if to none.
func (s *Slice) serviceHash() uint64 {
	if s == nil || s.service == 0 {
		return 0
	}
	return hashNameString(s.namespace, s.Service())
}

func (s *Slice) importHash() uint64 {
	if s == nil || s.imported == 0 {
		return 0
	}
	return hashNameString(s.namespace, s.imported.of(s.text))
}

// reindex moves a table from old under the hash was to next under the hash is; a hash of 0 stands for nothing.
func (w *sliceWriter) reindex(t *table[Slice], was, is uint64, old, next *Slice) {
	switch had, has := old != nil && was != 0, next != nil && is != 0; {
	case had && has && was == is:
		t.swap(was, old, next)
	default:
		if has {
			t.put(is, next)
		}
		if had {
			t.remove(was, old)
		}
	}
}

// measure tells how long a change took to arrive, if the slice says when it happened and its service is known.
func (w *sliceWriter) measure(o *lean.EndpointSlice) {
	if w.store.config.Latency == nil {
		return
	}
	at := o.Meta.Annotation(lean.AnnotationTrigger)
	if at == nil {
		return
	}
	then, err := time.Parse(time.RFC3339Nano, string(at))
	if err != nil {
		return
	}
	if svc := w.store.Service(o.Meta.Namespace, o.Meta.Label(lean.LabelService)); svc != nil {
		w.store.config.Latency(svc.headless, time.Since(then))
	}
}

func (w *sliceWriter) drop(m *lean.Meta) {
	hash := hashName(m.Namespace, m.Name)
	if old := w.lookup(hash, m); old != nil {
		w.replace(hash, old, nil)
	}
}

func (w *sliceWriter) retain(m *lean.Meta) {
	if old := w.lookup(hashName(m.Namespace, m.Name), m); old != nil {
		old.seen = w.round
	}
}

func (w *sliceWriter) sweep() int {
	return sweep(&w.byName, func(s *Slice) bool { return s.seen != w.round }, func(s *Slice) {
		w.replace(hashNameString(s.namespace, s.name.of(s.text)), s, nil)
	})
}

func (w *sliceWriter) lookup(hash uint64, m *lean.Meta) *Slice {
	c := w.byName.find(hash)
	for s := c.next(); s != nil; s = c.next() {
		if s.name.of(s.text) == string(m.Name) && s.namespace == string(m.Namespace) {
			return s
		}
	}
	return nil
}
