package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

const (
	progressEvery = 3 * time.Second
	checkEvery    = 16384 // records, between looks at the clock
)

// errSameSerial ends reading a file whose SOA record has the serial that is served already.
var errSameSerial = errors.New("no change in SOA serial")

// Load reads the zone's file, whatever its serial, and answers from it from now on. If there is an error, all stays
// as it was; it is a *fs.PathError as it came from os.Open if the file itself could not be opened.
func (z *Zone) Load() error {
	v, seen, err := z.read(context.Background(), -1, os.Open)
	z.seen = seen
	if err != nil {
		return err
	}
	z.Replace(v)
	return nil
}

// read reads the zone's file. serial is the one that the file must not have, -1 for none: then reading ends with
// errSameSerial. open opens the file, and those that it includes. What was seen of the file is returned in any case.
func (z *Zone) read(ctx context.Context, serial int64, open func(path string) (*os.File, error)) (v *zone.Zone, seen reading, err error) {
	path := z.File()
	f, err := open(path)
	if err != nil {
		return nil, reading{}, err
	}
	seen.opens = open
	in := seen.add(path, f)
	l := loader{ctx: ctx, origin: z.name, file: path, serial: serial, nsec3: z.NSEC3, digest: z.ZONEMD, asIs: z.KeepCase}
	v, err = l.load(in, seen.open)
	if in.Close(); err == nil {
		seen.end()
	}
	return v, seen, err
}

// loader makes a version of a zone out of a master file.
type loader struct {
	ctx    context.Context // cancels
	origin []byte
	file   string
	serial int64 // as in Zone.read
	nsec3  bool  // NSEC3 records may be there
	digest bool  // a digest that is there must be right
	asIs   bool  // targets keep their case

	progress time.Duration // how often a long load tells how far it got; progressEvery if it is 0
}

// load reads r, record by record, so that no more than the records themselves is kept. open opens what the file includes.
func (l *loader) load(r io.Reader, open func(path string) (io.ReadCloser, error)) (*zone.Zone, error) {
	origin := wire.Text(l.origin)
	w := warnings{file: l.file}
	defer w.end()
	b := zone.NewBuilder(l.origin, w.add)
	b.AdoptSOA()
	if l.nsec3 {
		b.AllowNSEC3()
	}
	if l.asIs {
		b.KeepCase()
	} else {
		b.FoldCase()
	}
	p := zonefile.New(r, l.file, l.origin)
	if open != nil {
		p.Open = open
	}
	if err := l.records(p, b); err != nil {
		return nil, err
	}
	v, err := b.Build()
	switch {
	case errors.Is(err, zone.ErrNoSOA):
		return nil, noSOA(l.file, origin)
	case err != nil:
		return nil, fmt.Errorf("file %q for origin %s: %w", l.file, origin, err)
	}
	if l.serial >= 0 && int64(v.Serial()) == l.serial {
		return nil, errSameSerial // of a SOA record with another owner
	}
	if l.digest {
		if err := v.VerifyDigest(); err != nil && !errors.Is(err, zone.ErrNoDigest) {
			return nil, fmt.Errorf("file %q for origin %s: %w", l.file, origin, err)
		}
	}
	return v, nil
}

// maxWarnings is how many of one reading are logged; the others are counted.
const maxWarnings = 20

// warnings logs what is wrong with single records of a file.
type warnings struct {
	file string
	n    int
}

func (w *warnings) add(format string, args ...any) {
	if w.n++; w.n <= maxWarnings {
		flog.Warningf("File %q: %s", w.file, fmt.Sprintf(format, args...))
	}
}

func (w *warnings) end() {
	if more := w.n - maxWarnings; more > 0 {
		flog.Warningf("File %q: %d more warnings", w.file, more)
	}
}

// records gives the records of p to b.
func (l *loader) records(p *zonefile.Parser, b *zone.Builder) error {
	every := cmp.Or(l.progress, progressEvery)
	next := time.Now().Add(every)
	for n := 1; ; n++ {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return parseError(l.file, wire.Text(l.origin), err)
		}
		b.At(p.Entry())
		if !b.Class(rec.Owner, rec.Class) {
			continue
		}
		if rec.Type == wire.TypeSOA && l.serial >= 0 && wire.EqualFold(rec.Owner, l.origin) && soaSerial(rec.RData) == l.serial {
			return errSameSerial
		}
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			file, line := p.Line()
			return fmt.Errorf("%w (%s:%d)", err, file, line)
		}
		if n%checkEvery == 0 {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			if time.Now().After(next) {
				flog.Infof("Reading zone %q from %q: %d records so far", wire.Text(l.origin), l.file, n)
				next = time.Now().Add(every)
			}
		}
	}
}
