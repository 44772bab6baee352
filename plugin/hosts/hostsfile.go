package hosts

import (
	"cmp"
	"iter"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/held"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var hlog = log.NewWithPlugin("hosts")

var (
	hostsEntries = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: "hosts", Name: "entries", Help: "The combined number of entries in hosts and Corefile.",
	}, []string{"hostsfile"}))
	hostsReloadTime = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: "hosts", Name: "reload_timestamp_seconds", Help: "The timestamp of the last reload of hosts file.",
	})
)

// Hostsfile is a hosts file with the lines of the Corefile beside it.
type Hostsfile struct {
	sync.RWMutex // kept for those who lock it; readers here need no lock

	// Origins are the zones whose names are taken, fully qualified and in lower case; all if there are none.
	Origins []string

	path   string
	ttl    uint32
	reload time.Duration // how often the file is looked at; 0: never
	inline [][]byte      // lines of the Corefile
	noPTR  bool

	once    sync.Once
	origins [][]byte // Origins in wire form, nil for all
	fixed   *table   // of the inline lines

	file atomic.Pointer[table]
	seen stamp.Stamp // of the file when it was read; this and settles belong to who reads

	settles stamp.Settling
}

const defaultTTL = 3600

// prepare completes a Hostsfile at its first use.
func (h *Hostsfile) prepare() {
	h.once.Do(func() {
		if h.ttl == 0 {
			h.ttl = defaultTTL
		}
		for _, o := range h.Origins {
			if name, err := wire.LowerName(o); err == nil {
				h.origins = append(h.origins, name)
			}
		}
		if len(h.inline) == 0 {
			return
		}
		b := newBuilder(h.inOrigins, h.noPTR, nil)
		for _, line := range h.inline {
			b.line(line)
		}
		h.fixed, _ = b.build()
	})
}

func (h *Hostsfile) inOrigins(name []byte) bool {
	for _, o := range h.origins {
		if wire.Below(name, o) {
			return true
		}
	}
	return h.origins == nil
}

// tables is the file's names, then those of the inline lines.
func (h *Hostsfile) tables() [2]*table { return [2]*table{h.file.Load(), h.fixed} }

// collectFrom is the octets of a table from which on its memory is collected as soon as another has taken its place. As tables
// leave no other garbage, it would lie there for many reloads.
const collectFrom = 4 << 20

// readHosts reads the file if it was changed. If it is gone, what was read last stays.
func (h *Hostsfile) readHosts() {
	h.prepare()
	f, err := os.Open(h.path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() || stamp.Of(info) == h.seen {
		return
	}
	old := h.file.Load()
	b := newBuilder(h.inOrigins, h.noPTR, old)
	if err := b.read(f); err != nil {
		hlog.Warningf("Failed to read %q: %v", h.path, err)
		return
	}
	t, err := b.build()
	if err != nil {
		hlog.Warningf("Failed to read %q: %v", h.path, err)
		return
	}
	h.seen = stamp.Of(info)
	t.changed = h.seen.Changed()
	h.file.Store(t)
	if old != nil && old.size() > collectFrom {
		old = nil
		runtime.GC()
	}
	hlog.Debugf("Parsed hosts file into %d entries", h.show())
}

// show has metrics tell of what there is, and returns the number of entries.
func (h *Hostsfile) show() (entries int) {
	t := h.file.Load()
	if t == nil {
		return 0
	}
	entries = t.entries
	if h.fixed != nil {
		entries += h.fixed.entries
	}
	hostsEntries.WithLabelValues(h.path).Set(float64(entries))
	hostsReloadTime.Set(float64(t.changed.UnixNano()) / 1e9)
	return entries
}

// watch reads the file again when it was changed, until stop is closed.
func (h *Hostsfile) watch(stop <-chan struct{}) {
	next := time.NewTimer(h.reload)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(cmp.Or(h.readSettled(time.Now()), h.reload))
		case <-stop:
			return
		}
	}
}

// readSettled is readHosts while the server runs. A file that was changed just now may still be written, and its first
// lines are a file, too: again is when to come for it in its stead, 0 for the usual time. A pipe in its place is as if it
// was gone.
func (h *Hostsfile) readSettled(now time.Time) (again time.Duration) {
	if stamp.IsPipe(h.path) { // nothing would end that
		return 0
	}
	if is := stamp.At(h.path); is != h.seen && is != (stamp.Stamp{}) {
		if again = h.settles.Wait(is.Changed(), now, h.reload); again > 0 {
			return again
		}
	}
	h.readHosts()
	return 0
}

// LookupStaticHostV4 is the IPv4 addresses of a host.
func (h *Hostsfile) LookupStaticHostV4(host string) []net.IP { return h.lookup(host, wire.TypeA) }

// LookupStaticHostV6 is the IPv6 addresses of a host.
func (h *Hostsfile) LookupStaticHostV6(host string) []net.IP { return h.lookup(host, wire.TypeAAAA) }

func (h *Hostsfile) lookup(host string, typ uint16) (ips []net.IP) {
	h.prepare()
	name, err := wire.LowerName(host)
	if err != nil {
		return nil
	}
	var f found
	for _, t := range h.tables() {
		for ok := t.find(&f, name, wire.Hash(name), typ); ok; ok = f.next() {
			ips = append(ips, f.addr().AsSlice())
		}
	}
	return ips
}

// LookupStaticAddr is the names of an address, fully qualified and in lower case.
func (h *Hostsfile) LookupStaticAddr(addr string) (names []string) {
	h.prepare()
	a, ok := parseAddr(addr)
	if !ok {
		return nil
	}
	for name := range h.names(a) {
		names = append(names, wire.Text(name))
	}
	return names
}

// names is the names of an address, each once: those of the file, then those of inline lines. They are only to be read.
func (h *Hostsfile) names(addr netip.Addr) iter.Seq[[]byte] {
	file, inline := h.file.Load(), h.fixed
	return func(yield func([]byte) bool) {
		for name := range file.names(addr) {
			if !yield(name) {
				return
			}
		}
		for name := range inline.names(addr) {
			if !file.has(addr, name) && !yield(name) {
				return
			}
		}
	}
}

// Map is the names and addresses of one source.
type Map struct{ t *table }

// Len is how many addresses of names, and names of addresses, it has.
func (m *Map) Len() int {
	if m == nil || m.t == nil {
		return 0
	}
	return m.t.entries
}
