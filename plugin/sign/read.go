package sign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// Parse reads a master file into a Zone, without the records that signing makes: keys, signatures and proofs. fileName is for errors and for the
// files that it includes.
func Parse(f io.Reader, origin, fileName string) (*file.Zone, error) {
	b, _, err := read(f, dns.CanonicalName(origin), fileName, nil)
	if err != nil {
		return nil, err
	}
	plain, err := b.Build()
	if err != nil {
		return nil, err
	}
	z := file.NewZone(origin, fileName)
	z.Replace(plain)
	return z, nil
}

// readFile reads a file as Parse does, and returns the SOA record beside it, whose serial number is now.
func readFile(name, origin string, now time.Time) (*zone.Builder, *dns.SOA, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	serial := uint32(now.Unix())
	return read(f, origin, name, &serial)
}

// read reads a file; a serial that is given takes the place of the SOA record's.
func read(f io.Reader, origin, name string, serial *uint32) (*zone.Builder, *dns.SOA, error) {
	apex, err := wire.LowerName(origin)
	if err != nil {
		return nil, nil, fmt.Errorf("zone %s: %w", origin, err)
	}
	b := zone.NewBuilder(apex, func(format string, args ...any) { log.Warningf("File %q: %s", name, fmt.Sprintf(format, args...)) })
	var soa *dns.SOA
	for p := zonefile.New(f, name, apex); ; {
		rec, err := p.Next()
		switch {
		case errors.Is(err, io.EOF) && soa == nil:
			return nil, nil, fmt.Errorf("file %q: no SOA record for %s", name, origin)
		case errors.Is(err, io.EOF):
			return b, soa, nil
		case err != nil:
			return nil, nil, err
		case made(rec.Type):
			continue
		case rec.Class != dns.ClassINET:
			return nil, nil, fmt.Errorf("file %q: record of class %d", name, rec.Class)
		}
		rdata := rec.RData
		if rec.Type == dns.TypeSOA && wire.EqualFold(rec.Owner, apex) {
			if serial != nil {
				if rdata, err = withSerial(rdata, *serial); err != nil {
					return nil, nil, err
				}
			}
			rr, err := zone.Record{Owner: apex, Type: rec.Type, TTL: rec.TTL, RData: rdata}.RR()
			if err != nil {
				return nil, nil, err
			}
			soa = rr.(*dns.SOA)
		}
		b.At(p.Entry())
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rdata); err != nil {
			return nil, nil, fmt.Errorf("file %q: %w", name, err)
		}
	}
}

// made reports whether records of a type are made by signing, so that those in the zone file do not count.
func made(t uint16) bool {
	switch t {
	case dns.TypeDNSKEY, dns.TypeRRSIG, dns.TypeCDNSKEY, dns.TypeCDS, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeZONEMD:
		return true
	}
	return false
}
