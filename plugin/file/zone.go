package file

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/tree"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// Zone is a zone that is served: a name, where its data comes from, and the data.
//
// The data is either a version in the store, which Load and Replace put there, or, while there is none, what was put
// into Apex and Tree record by record. The exported fields are for who puts a Zone together; they are guarded by the
// embedded RWMutex if they are changed while the zone is served. Insert, Delete and the methods of Tree need no lock.
type Zone struct {
	// What each query needs stands together: with ten thousand zones it is in no cache.
	name        []byte // in wire form, lower; in nameRoom if it is short
	store       zone.Live
	expired     atomic.Bool // the version in the store is too old
	toldExpired atomic.Bool
	nameRoom    [36]byte

	origin string // the name, fully qualified
	file   string

	*tree.Tree // records put in one by one, but for those of Apex
	Apex

	Expired bool // the data is too old to be served; read while there is no version in the store

	sync.RWMutex

	StartupOnce    sync.Once
	TransferFrom   []string
	ReloadInterval time.Duration // how often the file is looked at; 0: never
	ReloadByMtime  bool          // it is read whenever it was changed, also with the same serial
	NSEC3          bool          // NSEC3 records may be in the file
	ZONEMD         bool          // the file's digest has to be right, if it has one
	KeepCase       bool          // targets of SVCB and HTTPS records stay as they are in the file; see zone.Builder
	Upstream       *upstream.Upstream

	seen    reading // of the file; this and the next one belong to who loads
	settles stamp.Settling
	compile compiler
	ending  func() // ends what Reload started; guarded by the RWMutex
	failure status.Failure
}

// Apex is the records of the zone's name that others need all the time.
type Apex struct {
	SOA    *dns.SOA
	NS     []dns.RR
	SIGSOA []dns.RR
	SIGNS  []dns.RR
}

// NewZone is a Zone without data. file is where Load reads it, "" if it comes from elsewhere.
func NewZone(name, file string) *Zone {
	origin := plugin.Name(name).Normalize()
	wireName, err := wire.LowerName(origin)
	if err == nil {
		origin = wire.Text(wireName)
	}
	z := &Zone{origin: origin, file: file, Tree: new(tree.Tree)}
	if err == nil {
		z.name = append(z.nameRoom[:0], wireName...)
	}
	return z
}

// Copy is a Zone of the same name, file, primaries and apex, without other data.
func (z *Zone) Copy() *Zone {
	c := z.CopyWithoutApex()
	z.RLock()
	defer z.RUnlock()
	c.Apex = z.Apex
	return c
}

// CopyWithoutApex is a Zone of the same name, file and primaries, without data.
func (z *Zone) CopyWithoutApex() *Zone {
	z.RLock()
	defer z.RUnlock()
	c := NewZone(z.origin, z.file)
	c.TransferFrom, c.Expired, c.Upstream = z.TransferFrom, z.Expired, z.Upstream
	c.ReloadInterval, c.ReloadByMtime, c.NSEC3, c.ZONEMD, c.KeepCase = z.ReloadInterval, z.ReloadByMtime, z.NSEC3, z.ZONEMD, z.KeepCase
	return c
}

// File is the name of the file that the zone is read from.
func (z *Zone) File() string {
	z.RLock()
	defer z.RUnlock()
	return z.file
}

// SetFile changes it; the next look at the file is at the new one.
func (z *Zone) SetFile(path string) {
	z.Lock()
	defer z.Unlock()
	z.file = path
}

// Origin is the zone's name, fully qualified and in lower case.
func (z *Zone) Origin() string { return z.origin }

// Current is the version that queries are answered from now, nil if there is none: what the store has, or what was put in
// record by record.
func (z *Zone) Current() *zone.Zone {
	if v := z.store.Load(); v != nil {
		return v
	}
	v, _ := z.compiled()
	return v
}

// Replace makes v the version that queries are answered from. The zone is not expired then.
func (z *Zone) Replace(v *zone.Zone) {
	z.SetExpired(false)
	z.store.Replace(v)
}

// Advance is Replace for a version of a zone that grows, of which nobody who asked with OnReplace is told; see zone.Live.
func (z *Zone) Advance(v *zone.Zone) { z.store.Advance(v) }

// OnReplace has f called whenever the zone was replaced by another version; see zone.Live.
func (z *Zone) OnReplace(f func(old, now *zone.Zone)) (stop func()) { return z.store.OnReplace(f) }

// SetExpired tells whether the data is too old to be served: queries get SERVFAIL then.
func (z *Zone) SetExpired(on bool) {
	z.expired.Store(on)
	z.Lock()
	z.Expired = on
	z.Unlock()
}

// version is Current for a query, and whether it has expired. What is wrong is logged once.
func (z *Zone) version() (v *zone.Zone, expired bool) {
	if v = z.store.Load(); v != nil {
		expired = z.expired.Load()
	} else {
		v, expired = z.compiled()
	}
	if expired != z.toldExpired.Load() && z.toldExpired.CompareAndSwap(!expired, expired) && expired {
		flog.Errorf("Zone %s is expired", z.origin)
	}
	return v, expired
}

// errNoSOA is the error of a zone that cannot be transferred or served.
var errNoSOA = errors.New("no SOA")

// SOASerialIfDefined is the serial of the zone's SOA record, -1 if it has none.
func (z *Zone) SOASerialIfDefined() int64 {
	if v := z.Current(); v != nil {
		return int64(v.Serial())
	}
	return -1
}

// ApexIfDefined is the SOA record, its signatures, the NS records of the apex and theirs; an error if there is no SOA record.
func (z *Zone) ApexIfDefined() ([]dns.RR, error) {
	v := z.Current()
	if v == nil {
		return nil, errNoSOA
	}
	var rrs []dns.RR
	for _, typ := range [...]uint16{dns.TypeSOA, dns.TypeNS} {
		set := v.Apex().Set(typ)
		rrs = appendRRs(rrs, v, v.Origin(), set)
		rrs = appendRRs(rrs, v, v.Origin(), set.Signatures())
	}
	return rrs, nil
}

// appendRRs appends the records of an RRset at owner.
func appendRRs(rrs []dns.RR, v *zone.Zone, owner []byte, set zone.RRset) []dns.RR {
	for rec := range v.RecordsOf(owner, set) {
		if rr, err := rec.RR(); err == nil {
			rrs = append(rrs, rr)
		}
	}
	return rrs
}
