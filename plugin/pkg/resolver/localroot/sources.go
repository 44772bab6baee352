package localroot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// Source is where the root zone comes from.
type Source interface {
	// Fetch gets the zone, and tells when that version was known to be current. The error is fetch.ErrCurrent if it is
	// old, which is nil if there is none.
	Fetch(ctx context.Context, old *zone.Zone) (v *zone.Zone, at time.Time, err error)
	// Near reports whether it may be looked at often.
	Near() bool
	// String is what logs call it.
	String() string
}

// A source is not believed: it may be somebody else by now, or in between. So what it sends is
// bounded, and nothing that it sends makes this process read or ask anything else.

// limits are of a transfer; the root zone has some 25,000 records in 2 MiB.
var limits = fetch.Limits{Records: 1_000_000, Octets: mostOctets, Total: 5 * time.Minute}

// mostOctets is of a transfer, and of a file.
const mostOctets = 128 << 20

// Transfer is a server that hands out the zone, HOST:PORT.
type Transfer string

// Fetch implements Source: an incremental transfer if there is an old version (RFC 1995), else a whole one (RFC 5936).
func (s Transfer) Fetch(ctx context.Context, old *zone.Zone) (*zone.Zone, time.Time, error) {
	c := fetch.Client{Primary: string(s), Limits: limits}
	v, err := c.Zone(ctx, []byte(rrset.Root), old, func(string, ...any) {})
	return v, clock.Now(), err
}

// Near implements Source.
func (s Transfer) Near() bool { return false }

// String implements Source.
func (s Transfer) String() string { return "transfer from " + string(s) }

// URL is a master file behind a URL. It is for one goroutine.
type URL struct {
	URL    string
	Client *http.Client

	tag  string // of the version that came last: it is told only if there is another one
	last *zone.Zone
}

// urlTime is how long a download may take.
const urlTime = 2 * time.Minute

// Fetch implements Source.
func (s *URL) Fetch(ctx context.Context, old *zone.Zone) (*zone.Zone, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, urlTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	if old != nil && old == s.last && s.tag != "" {
		r.Header.Set("If-None-Match", s.tag)
	}
	a, err := s.Client.Do(r)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer a.Body.Close()
	switch a.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		return nil, clock.Now(), fetch.ErrCurrent
	default:
		return nil, time.Time{}, errors.New(a.Status)
	}
	v, err := read(ctx, a.Body, s.URL, func(string) (io.ReadCloser, error) { return nil, errors.New("nothing is included there") })
	if err != nil {
		return nil, time.Time{}, err
	}
	s.tag = a.Header.Get("ETag")
	s.last, err = newer(v, old)
	return s.last, clock.Now(), err
}

// Near implements Source.
func (s *URL) Near() bool { return false }

// String implements Source.
func (s *URL) String() string { return s.URL }

// File is a master file. What is in it was current when it was written. It is for one goroutine.
type File struct {
	Path string

	seen stamp.Stamp
	last *zone.Zone
}

// Fetch implements Source.
func (s *File) Fetch(ctx context.Context, old *zone.Zone) (*zone.Zone, time.Time, error) {
	if s.last != nil { // not at the start
		if err := stamp.NoPipe(s.Path); err != nil {
			return nil, time.Time{}, err
		}
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	at := info.ModTime()
	if old != nil && old == s.last && s.seen == stamp.Of(info) {
		return nil, at, fetch.ErrCurrent
	}
	v, err := read(ctx, f, s.Path, nil)
	if err != nil {
		return nil, time.Time{}, err
	}
	s.seen = stamp.Of(info)
	s.last, err = newer(v, old)
	return s.last, at, err
}

// Near implements Source.
func (s *File) Near() bool { return true }

// String implements Source.
func (s *File) String() string { return "file " + s.Path }

// newer is v, unless it has the serial that there is: then it is old, with fetch.ErrCurrent.
func newer(v, old *zone.Zone) (*zone.Zone, error) {
	if old != nil && v.Serial() == old.Serial() {
		return old, fetch.ErrCurrent
	}
	return v, nil
}

// read reads a master file of the root zone (RFC 1035 §5). open opens what it includes; nil is as the
// system has it. Records of other classes, and of names that are not there, are left out.
func read(ctx context.Context, r io.Reader, name string, open func(string) (io.ReadCloser, error)) (*zone.Zone, error) {
	b := zone.NewBuilder([]byte(rrset.Root), func(string, ...any) {})
	b.AllowNSEC3()
	p := zonefile.New(io.LimitReader(r, mostOctets), name, []byte(rrset.Root))
	if open != nil {
		p.Open = open
	}
	for n := 0; ; n++ {
		rec, err := p.Next()
		if errors.Is(err, io.EOF) {
			return b.Build()
		}
		if err != nil {
			return nil, err
		}
		if n >= limits.Records {
			return nil, fmt.Errorf("more than %d records", limits.Records)
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if rec.Class != dns.ClassINET {
			continue
		}
		if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			return nil, err
		}
	}
}
