package dnssec

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/singleflight"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// How long signatures count, and when the kept ones are replaced.
const (
	backdated = 3 * time.Hour      // for clients whose clock is slow
	validity  = 8 * 24 * time.Hour // from now on
	retired   = 2 * 24 * time.Hour // with less left, a signature is not given out any more
	ageing    = 3 * 24 * time.Hour // with less left, it is made anew, if somebody asks for it
)

// signatures makes signatures and keeps them.
//
// An entry of the cache is the RRSIG records, and a NULL record that holds what was signed: keys of the cache are hashes, and two RRsets may have
// the same one.
type signatures struct {
	keys    *keyring
	cache   *cache.Cache[[]dns.RR]
	seed    maphash.Seed
	flight  singleflight.Group
	buffers sync.Pool // of *material
	counts  atomic.Pointer[counts]
	failed  atomic.Int64 // when a failure was last logged, in seconds

	keeper *keeper // nil if nobody looks after the cache
}

func newSignatures(c *cache.Cache[[]dns.RR], keys *keyring) *signatures {
	return &signatures{keys: keys, cache: c, seed: maphash.MakeSeed(), buffers: sync.Pool{New: func() any { return &material{packed: make([]byte, 4096)} }}}
}

// of is the signatures of an RRset in zone, by each key that signs records of its type, in the order of the keys. They are the caller's. set is
// only read. Without keys, or if the set cannot be signed, there are none.
func (s *signatures) of(set []dns.RR, zone string, now time.Time, server string) []dns.RR {
	keys := s.keys.signing(set[0].Header().Rrtype)
	if len(keys) == 0 {
		return nil
	}
	m := s.buffers.Get().(*material)
	defer s.buffers.Put(m)
	if err := m.fill(set, zone); err != nil {
		s.complain(set, now, err)
		return nil
	}
	id := s.id(m)
	n := s.countsOf(server)
	if entry, ok := s.cache.Get(id); ok && m.signedBy(entry, now, retired) {
		n.hits.Inc()
		if s.keeper != nil && !m.signedBy(entry, now, ageing) {
			s.keeper.renew(set, zone, m.ttl)
		}
		return given(entry, set[0].Header())
	}
	n.misses.Inc()
	entry, err := s.make(id, m, keys, set, zone, now)
	if err != nil {
		s.complain(set, now, err)
		return nil
	}
	n.entries.Set(float64(s.cache.Len()))
	return given(entry, set[0].Header())
}

// id is what the cache knows a set by. Nobody can choose two with the same: the seed is secret.
func (s *signatures) id(m *material) uint64 { return maphash.Bytes(s.seed, m.bytes) }

// make signs a set, once for all who want it at the same time.
func (s *signatures) make(id uint64, m *material, keys []*DNSKEY, set []dns.RR, zone string, now time.Time) ([]dns.RR, error) {
	made, err := s.flight.Do(id, func() (any, error) {
		entry, err := m.sign(keys, set, zone, now)
		if err == nil {
			s.cache.Add(id, entry)
		}
		return entry, err
	})
	if err != nil {
		return nil, err
	}
	if entry := made.([]dns.RR); m.signedBy(entry, now, 0) {
		return entry, nil
	}
	return m.sign(keys, set, zone, now) // another set with the same hash was under way
}

// given is an entry's signatures in memory of their own, with the owner as it is written in h.
func given(entry []dns.RR, h *dns.RR_Header) []dns.RR {
	sigs := make([]dns.RR, 0, len(entry))
	copies := make([]dns.RRSIG, len(entry)-1)
	for i := range copies {
		copies[i] = *entry[i].(*dns.RRSIG)
		copies[i].Hdr.Name = h.Name
		sigs = append(sigs, &copies[i])
	}
	return sigs
}

// complain logs that a set could not be signed, once a second at most.
func (s *signatures) complain(set []dns.RR, now time.Time, err error) {
	if last := s.failed.Load(); last != now.Unix() && s.failed.CompareAndSwap(last, now.Unix()) {
		h := set[0].Header()
		log.Errorf("Failed to sign %s %s: %v", h.Name, dns.TypeToString[h.Rrtype], err)
	}
}

// material is what stands behind a signature: all of an RRset but the case of its owner and the order of its records, and the zone.
type material struct {
	bytes  []byte
	ttl    uint32 // the least of the records
	packed []byte
	datas  [][]byte
}

// fill takes in a set. What it holds counts until the next call.
func (m *material) fill(set []dns.RR, zone string) error {
	h := set[0].Header()
	m.ttl = h.Ttl
	m.packed, m.datas = m.packed[:0], m.datas[:0]
	var owner int
	for _, rr := range set {
		m.ttl = min(m.ttl, rr.Header().Ttl)
		at := len(m.packed)
		// If that makes room, the data noted so far stays in the old block.
		packed, err := wire.AppendRR(m.packed, rr)
		if err != nil {
			return err
		}
		owner = wire.NameLen(packed[at:])
		m.datas = append(m.datas, packed[at+owner+8:]) // length and data
		m.packed = packed
	}
	if len(m.datas) > 1 {
		slices.SortFunc(m.datas, bytes.Compare)
	}
	m.bytes = append(m.bytes[:0], m.packed[:owner]...)
	wire.Lower(m.bytes, m.bytes)
	m.bytes = binary.BigEndian.AppendUint16(m.bytes, h.Rrtype)
	m.bytes = binary.BigEndian.AppendUint32(m.bytes, m.ttl)
	m.bytes = append(append(m.bytes, zone...), 0)
	for _, data := range m.datas {
		m.bytes = append(m.bytes, data...)
	}
	return nil
}

// sign makes the entry of a set.
func (m *material) sign(keys []*DNSKEY, set []dns.RR, zone string, now time.Time) ([]dns.RR, error) {
	entry := make([]dns.RR, 0, len(keys)+1)
	for _, k := range keys {
		sig := k.rrsig(zone, now.Add(-backdated), now.Add(validity))
		sig.Hdr.Ttl, sig.OrigTtl = m.ttl, m.ttl
		if err := zonekeys.SignSet(sig, k.s, set); err != nil {
			return nil, err
		}
		entry = append(entry, sig)
	}
	return append(entry, &dns.NULL{Data: string(m.bytes)}), nil
}

// signedBy reports whether an entry is of this set, and its signatures count for some time yet.
func (m *material) signedBy(entry []dns.RR, now time.Time, left time.Duration) bool {
	signed, ok := entry[len(entry)-1].(*dns.NULL)
	return ok && signed.Data == string(m.bytes) && lasts(entry, now, left)
}

// lasts reports whether an entry's signatures count now and for some time (RFC 4034 §3.1.5: serial number arithmetic).
func lasts(entry []dns.RR, now time.Time, left time.Duration) bool {
	at, until := uint32(now.Unix()), uint32(now.Add(left).Unix())
	for _, rr := range entry {
		if sig, ok := rr.(*dns.RRSIG); ok && (int32(sig.Expiration-until) < 0 || int32(at-sig.Inception) < 0) {
			return false
		}
	}
	return true
}
