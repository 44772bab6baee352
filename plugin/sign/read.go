package sign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// Parse reads a master file into a Zone, without the records that signing makes: keys, signatures and proofs. fileName is for errors and for the
// files that it includes.
func Parse(f io.Reader, origin, fileName string) (*file.Zone, error) {
	b, _, err := read(f, dns.CanonicalName(origin), fileName, nil, nil)
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

// source is a file that was read, as it was when reading it began.
type source struct {
	path  string
	stamp stamp.Stamp // the zero one: it was not there
}

// sources is the zone file and what it includes.
type sources []source

// open opens a file and notes it.
func (s *sources) open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		*s = append(*s, source{path: path})
		return nil, err
	}
	in := source{path: path}
	if info, err := f.Stat(); err == nil {
		in.stamp = stamp.Of(info)
	}
	*s = append(*s, in)
	return f, nil
}

// readFile reads a file as Parse does, and returns the SOA record beside it, whose serial number is now. What was read is noted in from.
func readFile(name, origin string, now time.Time, from *sources) (*zone.Builder, *dns.SOA, error) {
	f, err := from.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	serial := uint32(now.Unix())
	return read(f, origin, name, &serial, from.open)
}

// sourcesOf is the zone file and what it includes, as far as it can be read.
func sourcesOf(name, origin string) (all sources) {
	f, err := all.open(name)
	if err != nil {
		return all
	}
	defer f.Close()
	apex, err := wire.LowerName(origin)
	if err != nil {
		return all
	}
	p := zonefile.New(f, name, apex)
	p.Open = all.open
	for err == nil {
		_, err = p.Next()
	}
	return all
}

// read reads a file; a serial that is given takes the place of the SOA record's. open opens what the file includes, nil is os.Open.
func read(f io.Reader, origin, name string, serial *uint32, open func(path string) (io.ReadCloser, error)) (*zone.Builder, *dns.SOA, error) {
	apex, err := wire.LowerName(origin)
	if err != nil {
		return nil, nil, fmt.Errorf("zone %s: %w", origin, err)
	}
	b := zone.NewBuilder(apex, func(format string, args ...any) { log.Warningf("File %q: %s", name, fmt.Sprintf(format, args...)) })
	b.FoldCase()
	var soa *dns.SOA
	p := zonefile.New(f, name, apex)
	if open != nil {
		p.Open = open
	}
	for {
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
			file, line := p.Entry()
			return nil, nil, fmt.Errorf("file %q, line %d: record %s of class %s, want IN", file, line, wire.Text(rec.Owner), dns.Class(rec.Class))
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
