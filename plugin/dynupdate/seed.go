package dynupdate

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// readSeed reads a zone from a master file, for it to grow from.
func readSeed(path, name string) (*zone.Zone, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := parseSeed(f, path, name)
	if err != nil {
		return nil, fmt.Errorf("failed to parse file %q for origin %s: %w", path, name, err)
	}
	return v, nil
}

// parseSeed reads a master file: one SOA record, of class IN only. What does not belong into the zone is left out, with a
// warning.
func parseSeed(r io.Reader, path, name string) (*zone.Zone, error) {
	origin, err := wire.LowerName(name)
	if err != nil {
		return nil, err
	}
	b := zone.NewBuilder(origin, func(format string, args ...any) { logger.Warningf("File %q: "+format, append([]any{path}, args...)...) })
	b.FoldCase()
	p := zonefile.New(r, path, origin)
	soas := 0
	for {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		b.At(p.Entry())
		if !b.Class(rec.Owner, rec.Class) {
			continue
		}
		if rec.Type == dns.TypeSOA {
			soas++
		}
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			file, line := p.Line()
			return nil, fmt.Errorf("%w (%s:%d)", err, file, line)
		}
	}
	switch {
	case soas == 0:
		return nil, fmt.Errorf("zone %s has no SOA", name)
	case soas > 1:
		return nil, fmt.Errorf("zone %s contains more than one SOA", name)
	}
	v, err := b.Build()
	if errors.Is(err, zone.ErrNoSOA) {
		return nil, fmt.Errorf("zone %s has no SOA", name)
	}
	if err != nil {
		return nil, err
	}
	if v.Serial() == 0 {
		return nil, fmt.Errorf("the SOA record of zone %s has serial 0", name)
	}
	return v.Growing()
}
