package sign

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// From when and how long signatures count. The jitter is drawn once for each signer, so that those of many servers and zones do not end all at once.
const (
	backdated       = 3 * time.Hour
	jitterInception = 18 * time.Hour
	validity        = 32 * 24 * time.Hour
	jitterExpiry    = 5 * 24 * time.Hour
)

// Pair is a key that signs all of a zone, and its DNSKEY record.
type Pair = zonekeys.Pair

// Signer signs one zone.
type Signer struct {
	keys      []Pair
	origin    string // fully qualified, in lower case
	dbfile    string
	directory string
	nsec3     bool
	zonemd    bool

	jitterInception time.Duration
	jitterExpiry    time.Duration

	from    sources // what was read last, also in vain; nil: nothing so far
	settles stamp.Settling
	counts  zonekeys.Span // of the signatures that were made or found to be good last; zero: of none

	unwritten retry
}

// newSigner is a Signer of a zone with jitter of its own.
func newSigner(origin, dbfile, directory string, keys []Pair) *Signer {
	return &Signer{keys: keys, origin: origin, dbfile: dbfile, directory: directory,
		jitterInception: rand.N(jitterInception), jitterExpiry: rand.N(jitterExpiry)}
}

// signedFile is the name of the file that is written.
func (s *Signer) signedFile() string { return filepath.Join(s.directory, "db."+s.origin+"signed") }

// does reports whether another Signer makes the same file of the same zone.
func (s *Signer) does(o *Signer) bool {
	return s.origin == o.origin && s.dbfile == o.dbfile && s.directory == o.directory && s.nsec3 == o.nsec3 && s.zonemd == o.zonemd &&
		slices.EqualFunc(s.keys, o.keys, zonekeys.Pair.Same)
}

// tags is the key tags, for log lines.
func (s *Signer) tags() string {
	tags := make([]string, len(s.keys))
	for i, k := range s.keys {
		tags[i] = strconv.Itoa(int(k.KeyTag))
	}
	return strings.Join(tags, ",")
}

// Sign reads the zone file and returns the zone with signatures that count from now on. The SOA record's serial number is now in seconds.
func (s *Signer) Sign(now time.Time) (*file.Zone, error) {
	signed, err := s.sign(context.Background(), now)
	if err != nil {
		return nil, err
	}
	z := file.NewZone(s.origin, s.signedFile())
	z.NSEC3 = s.nsec3
	z.Replace(signed)
	return z, fillApex(z)
}

// fillApex has the exported fields of a zone say what its version has at the apex.
func fillApex(z *file.Zone) error {
	rrs, err := z.ApexIfDefined()
	for _, rr := range rrs {
		switch rr := rr.(type) {
		case *dns.SOA:
			z.SOA = rr
		case *dns.NS:
			z.NS = append(z.NS, rr)
		case *dns.RRSIG:
			if rr.TypeCovered == dns.TypeSOA {
				z.SIGSOA = append(z.SIGSOA, rr)
			} else {
				z.SIGNS = append(z.SIGNS, rr)
			}
		}
	}
	return err
}

// sign is Sign that can be given up.
func (s *Signer) sign(ctx context.Context, now time.Time) (*zone.Zone, error) {
	for _, was := range s.from { // none at the start, where a pipe may be read
		if err := stamp.NoPipe(was.path); err != nil {
			return nil, err
		}
	}
	var from sources
	b, soa, err := readFile(s.dbfile, s.origin, now, &from)
	s.from = from
	if err != nil {
		return nil, err
	}
	if s.nsec3 {
		b.AllowNSEC3()
	}
	for _, rr := range zonekeys.Records(s.keys, s.origin, soa.Hdr.Ttl) {
		if err := b.AddRR(rr); err != nil {
			return nil, err
		}
	}
	plain, err := b.Build()
	if err != nil {
		return nil, err
	}
	chained, err := s.chain(plain, soa)
	if err != nil {
		return nil, err
	}
	signed, err := s.signAll(ctx, chained, soa, now)
	if err != nil || !s.zonemd {
		return signed, err
	}
	return s.digest(signed, soa, now)
}

// job is an RRset that is to be signed, and its signatures.
type job struct {
	owner []byte
	set   zone.RRset
	ttl   uint32 // of the signatures
	sigs  []dns.RR
}

// signAll adds signatures of all RRsets that the zone is authoritative for (RFC 4035 §2.2).
func (s *Signer) signAll(ctx context.Context, z *zone.Zone, soa *dns.SOA, now time.Time) (*zone.Zone, error) {
	var jobs []job
	for name, n := range z.Nodes() {
		owner := append([]byte(nil), name...)
		for set := range n.Sets() {
			// A DNAME at the apex hides the names of the zone, but not the hashed ones of the chain.
			if zonekeys.Signs(set.Type(), n.IsCut()) && (!n.Occluded() || set.Type() == dns.TypeNSEC3) {
				jobs = append(jobs, job{owner: owner, set: set, ttl: s.ttl(owner, set, soa)})
			}
		}
	}
	if err := s.signJobs(ctx, z, jobs, now); err != nil {
		return nil, err
	}
	e := z.Edit(s.warn)
	for i := range jobs {
		for _, sig := range jobs[i].sigs {
			if err := e.AddRR(sig); err != nil {
				return nil, err
			}
		}
	}
	return e.Build()
}

// ttl is that of an RRset's signatures: its own (RFC 4034 §3.1.4), but for the NS records of the apex, whose signatures have at most the SOA record's, as
// CoreDNS 1.14.7 writes them. A validator keeps the RRset for no longer then.
func (s *Signer) ttl(owner []byte, set zone.RRset, soa *dns.SOA) uint32 {
	ttl := set.Records().TTL()
	for r := set.Records(); len(r) > 0; r = r.Next() {
		ttl = min(ttl, r.TTL())
	}
	if set.Type() == dns.TypeNS && wire.Text(owner) == s.origin {
		ttl = min(ttl, soa.Hdr.Ttl)
	}
	return ttl
}

// signJobs makes the signatures on half of the processors, so that queries have the others.
func (s *Signer) signJobs(ctx context.Context, z *zone.Zone, jobs []job, now time.Time) error {
	return zonekeys.Each(ctx, len(jobs), max(1, runtime.GOMAXPROCS(0)/2), func(i int) error { return s.signJob(z, &jobs[i], now) })
}

// signJob signs one RRset with every key.
func (s *Signer) signJob(z *zone.Zone, j *job, now time.Time) error {
	var set []dns.RR
	for rec := range z.RecordsOf(j.owner, j.set) {
		rr, err := rec.RR()
		if err != nil {
			return err
		}
		rr.Header().Ttl = j.ttl
		set = append(set, rr)
	}
	sigs, err := s.signatures(set, j.ttl, now)
	j.sigs = sigs
	return err
}

// signatures is an RRset's signatures, one by each key.
func (s *Signer) signatures(set []dns.RR, ttl uint32, now time.Time) ([]dns.RR, error) {
	return zonekeys.Sign(s.keys, s.origin, set, ttl, s.span(now))
}

// span is from when to when signatures count that are made now.
func (s *Signer) span(now time.Time) zonekeys.Span {
	return zonekeys.Span{Inception: now.Add(-backdated - s.jitterInception), Expiration: now.Add(validity + s.jitterExpiry)}
}

// digest adds the ZONEMD record (RFC 8976 §3.5): over the signed zone, whose bitmaps know of it already.
func (s *Signer) digest(z *zone.Zone, soa *dns.SOA, now time.Time) (*zone.Zone, error) {
	sum, err := z.Digest(zone.DigestSimple, zone.DigestSHA384)
	if err != nil {
		return nil, err
	}
	rr := &dns.ZONEMD{Hdr: dns.RR_Header{Name: s.origin, Rrtype: dns.TypeZONEMD, Class: dns.ClassINET, Ttl: soa.Hdr.Ttl},
		Serial: soa.Serial, Scheme: zone.DigestSimple, Hash: zone.DigestSHA384, Digest: fmt.Sprintf("%x", sum)}
	sigs, err := s.signatures([]dns.RR{rr}, soa.Hdr.Ttl, now)
	if err != nil {
		return nil, err
	}
	e := z.Edit(s.warn)
	for _, rr := range append(sigs, rr) {
		if err := e.AddRR(rr); err != nil {
			return nil, err
		}
	}
	return e.Build()
}

func (s *Signer) warn(format string, args ...any) {
	log.Warningf("File %q: %s", s.dbfile, fmt.Sprintf(format, args...))
}

// withSerial is SOA data with another serial number (RFC 1035 §3.3.13).
func withSerial(rdata []byte, serial uint32) ([]byte, error) {
	at := wire.NameLen(rdata)
	if n := wire.NameLen(rdata[at:]); at == 0 || n == 0 || len(rdata) != at+n+20 {
		return nil, fmt.Errorf("SOA record: %w", wire.ErrName)
	}
	at += wire.NameLen(rdata[at:])
	out := append([]byte(nil), rdata...)
	binary.BigEndian.PutUint32(out[at:], serial)
	return out, nil
}
