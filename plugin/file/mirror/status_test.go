package mirror

import (
	"errors"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/transfer"
)

// What a plugin shows of its zones: transfer tells secondaries the serial, and control who operates the server.
var (
	_ transfer.Source = new(Front)
	_ status.Zones    = new(Front)
)

func TestZoneStatus(t *testing.T) {
	began := time.Now()
	p := &provider{zones: map[string][]string{"z": {soa, "www.example.org. 60 A 192.0.2.1"}}}
	m, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "z"})
	if err != nil {
		t.Fatal(err)
	}
	f := new(Front)
	f.Set(m)
	eventually.Holds(t, "the next reading is known", func() bool { return !f.ZoneStatus()[0].Refresh.IsZero() })
	s := f.ZoneStatus()[0]
	v, err := f.Version("example.org.")
	if err != nil {
		t.Fatal(err)
	}
	if s.Since.Before(began) || s.Refresh.Before(began) {
		t.Errorf("since %v, refresh %v; it began at %v", s.Since, s.Refresh, began)
	}
	s.Since, s.Refresh = time.Time{}, time.Time{}
	if want := (status.Zone{Name: "example.org.", Plugin: "mirrored", Source: "z", Loaded: true, Serial: v.Serial(), Records: v.Records()}); s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if _, err := f.Version("www.example.org."); err == nil {
		t.Error("a name in a zone is one")
	}
	p.mu.Lock()
	p.err = errors.New("no\ntoken")
	p.mu.Unlock()
	eventually.Holds(t, "the failure is shown", func() bool {
		s := f.ZoneStatus()[0]
		return s.Failure == "no; token" && s.Failing.After(began) && s.Loaded
	})
	p.mu.Lock()
	p.err = nil
	p.mu.Unlock()
	eventually.Holds(t, "all is well again", func() bool { return f.ZoneStatus()[0].Failure == "" })
}
