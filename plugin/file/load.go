package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// progressEvery is how often a long load tells how far it got.
const progressEvery = 3 * time.Second

// errSameSerial ends reading a file whose SOA record has the serial that is served already.
var errSameSerial = errors.New("no change in SOA serial")

// read reads a zone from r. serial is the serial of the zone that is served, -1 for none: if
// the file has the same, reading ends with errSameSerial.
func read(r io.Reader, origin []byte, name string, serial int64) (*zone.Zone, error) {
	text := wire.Text(origin)
	b := zone.NewBuilder(origin, func(format string, args ...any) {
		flog.Warningf("File %q: %s", name, fmt.Sprintf(format, args...))
	})
	p := zonefile.New(r, name, origin)
	next, n := time.Now().Add(progressEvery), 0
	for {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("failed to parse file %q for origin %s with error %w", name, text, err)
		}
		if rec.Class != dns.ClassINET {
			continue
		}
		if rec.Type == wire.TypeSOA && serial >= 0 && wire.EqualFold(rec.Owner, origin) && soaSerial(rec.RData) == serial {
			return nil, errSameSerial
		}
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			file, line := p.Line()
			return nil, fmt.Errorf("%w (%s:%d)", err, file, line)
		}
		if n++; n%65536 == 0 && time.Now().After(next) {
			flog.Infof("Reading zone %q from %q: %d records so far", text, name, n)
			next = time.Now().Add(progressEvery)
		}
	}
	z, err := b.Build()
	if errors.Is(err, zone.ErrNoSOA) {
		return nil, fmt.Errorf("file %q has no SOA record for origin %s", name, text)
	}
	return z, err
}

// soaSerial is the serial in an SOA record's data, -1 if there is none.
func soaSerial(rdata []byte) int64 {
	if len(rdata) < 20 {
		return -1
	}
	b := rdata[len(rdata)-20:]
	return int64(b[0])<<24 | int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3])
}

// stamp tells whether a file was changed.
type stamp struct {
	mtime time.Time
	size  int64
	inode uint64
}

func stampOf(info os.FileInfo) stamp { return stamp{info.ModTime(), info.Size(), inode(info)} }
