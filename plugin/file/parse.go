package file

import (
	"errors"
	"fmt"
	"io"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// Parse reads a master file into a Zone whose records can be walked and changed one by one. fileName is for errors and for
// the files that it includes. If serial is not negative and the SOA record has the same, that is an error, and nothing more is
// read. Class IN only; NSEC3 records are an error.
//
// It is for programs that work on records; to serve a file, NewZone and Load are faster and need less memory.
func Parse(f io.Reader, origin, fileName string, serial int64) (*Zone, error) {
	z := NewZone(origin, fileName)
	if z.name == nil {
		return nil, fmt.Errorf("zone %q: %w", origin, wire.ErrName)
	}
	p := zonefile.New(f, fileName, z.name)
	for {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, parseError(fileName, z.origin, err)
		}
		if rec.Class != dns.ClassINET {
			continue
		}
		if rec.Type == wire.TypeSOA && serial >= 0 && soaSerial(rec.RData) == serial {
			return nil, &sameSerial{z.origin, fileName, serial}
		}
		rr, err := zone.Record{Owner: rec.Owner, Type: rec.Type, TTL: rec.TTL, RData: rec.RData}.RR()
		if err == nil {
			err = z.Insert(rr)
		}
		if err != nil {
			file, line := p.Line()
			return nil, fmt.Errorf("%w (%s:%d)", err, file, line)
		}
	}
	if z.SOA == nil {
		return nil, noSOA(fileName, z.origin)
	}
	return z, nil
}

// sameSerial is the error of a file whose SOA record has the serial that is served already.
type sameSerial struct {
	origin, file string
	serial       int64
}

func (e *sameSerial) Error() string {
	return fmt.Sprintf("no change in SOA serial for origin %s in file %s, with %d SOA serial", e.origin, e.file, e.serial)
}

func parseError(file, origin string, err error) error {
	return fmt.Errorf("failed to parse file %q for origin %s with error %w", file, origin, err)
}

func noSOA(file, origin string) error {
	return fmt.Errorf("file %q has no SOA record for origin %s", file, origin)
}

// soaSerial is the serial in an SOA record's data, -1 if there is none.
func soaSerial(rdata []byte) int64 {
	if len(rdata) < 20 {
		return -1
	}
	b := rdata[len(rdata)-20:]
	return int64(b[0])<<24 | int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3])
}
