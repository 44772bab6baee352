package mirror

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// provider has zones by id, or fails.
type provider struct {
	mu    sync.Mutex
	zones map[string][]string
	err   error
	asked int
}

func (p *provider) fetch(_ context.Context, h Hosted, warn Warn) (all []dns.RR, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.err != nil {
		return nil, p.err
	}
	for _, text := range p.zones[h.ID] {
		if odd, ok := strings.CutPrefix(text, "odd "); ok {
			warn("%s is odd", odd)
			continue
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			return nil, err
		}
		all = append(all, rr)
	}
	return all, nil
}

const soa = "example.org. 300 IN SOA ns.example.org. host.example.org. 1 2 3 4 5"

func mirrored(t *testing.T, p *provider, f fall.F, hosted ...Hosted) (*Mirror, error) {
	t.Helper()
	m, err := New(Config{
		Plugin: "mirrored", Hosted: hosted, Fetch: p.fetch, Refresh: 20 * time.Millisecond,
		Next: func() plugin.Handler { return test.NextHandler(dns.RcodeRefused, errors.New("next")) }, Fall: func() fall.F { return f },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); m.End() })
	return m, m.Run(ctx)
}

// ask asks in both lanes, which must agree.
func ask(t *testing.T, m *Mirror, name string, typ uint16) string {
	t.Helper()
	r := new(dns.Msg).SetQuestion(name, typ)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	_, err := m.ServeDNS(context.Background(), rec, r)
	text := "next"
	if rec.Msg != nil {
		text = textOf(rec.Msg)
	} else if err == nil {
		text = "nothing"
	}
	b, _ := r.Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	if !q.Parse(b) {
		t.Fatal("not eligible")
	}
	switch out := m.ServeWire(context.Background(), &w, &q); {
	case out == wire.Unpack:
		if text != "next" {
			t.Errorf("%s was unpacked", name)
		}
	case out != wire.Done:
		t.Errorf("%s: %v", name, out)
	default:
		got := new(dns.Msg)
		if err := got.Unpack(w.Finish(&q, 1232)); err != nil || textOf(got) != text || w.Writer() != "mirrored" {
			t.Errorf("%s: %v by %q: message lane %s, wire lane %s", name, err, w.Writer(), text, textOf(got))
		}
	}
	return text
}

func textOf(m *dns.Msg) string {
	var all []string
	for _, rr := range m.Answer {
		all = append(all, strings.Join(strings.Fields(rr.String())[3:], " "))
	}
	slices.Sort(all)
	aa := ""
	if m.Authoritative {
		aa = " aa"
	}
	return dns.RcodeToString[m.Rcode] + aa + " " + strings.Join(all, "; ")
}

func TestAnswers(t *testing.T) {
	p := &provider{zones: map[string][]string{
		"public":  {soa, "example.org. 60 NS ns.example.org.", "www.example.org. 60 A 192.0.2.1", "both.example.org. 60 A 192.0.2.2", "sub.example.org. 60 NS ns.sub.example.org."},
		"private": {soa, "in.example.org. 60 A 10.0.0.1", "both.example.org. 60 A 10.0.0.2"},
		"other":   {"example.com. 300 IN SOA ns.example.com. host.example.com. 1 2 3 4 5", "*.example.com. 60 A 192.0.2.9"},
	}}
	f := fall.F{}
	f.SetZonesFromArgs([]string{"fall.example.org"})
	m, err := mirrored(t, p, f, Hosted{"Example.org.", "public"}, Hosted{"example.org.", "private"}, Hosted{"example.com.", "other"})
	if err != nil || !m.Ready() {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"www.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.1"},
		{"both.example.org.", dns.TypeA, "NOERROR aa A 192.0.2.2"},
		{"in.example.org.", dns.TypeA, "NOERROR aa A 10.0.0.1"},
		{"www.example.org.", dns.TypeMX, "NOERROR aa "},
		{"a.sub.example.org.", dns.TypeA, "NOERROR "},
		{"nope.example.org.", dns.TypeA, "NXDOMAIN aa "},
		{"a.fall.example.org.", dns.TypeA, "next"},
		{"x.example.com.", dns.TypeA, "NOERROR aa A 192.0.2.9"},
		{"www.example.net.", dns.TypeA, "next"},
	} {
		if got := ask(t, m, tc.name, tc.typ); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.name, dns.TypeToString[tc.typ], got, tc.want)
		}
	}
	if _, err := m.Transfer("www.example.org.", 0); !errors.Is(err, transfer.ErrNotAuthoritative) {
		t.Error(err)
	}
	ch, err := m.Transfer("example.org.", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rrs := range ch {
		n += len(rrs)
	}
	if n != 6 {
		t.Errorf("%d records were transferred", n)
	}
}

// What is read again takes the place of what was there; a failure changes nothing.
func TestUpdates(t *testing.T) {
	p := &provider{zones: map[string][]string{"z": {soa, "www.example.org. 60 A 192.0.2.1"}}}
	m, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "z"})
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.err, p.asked = errors.New("as it should"), 0
	p.mu.Unlock()
	eventually.Holds(t, "a failure", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.asked > 1 })
	if got := ask(t, m, "www.example.org.", dns.TypeA); got != "NOERROR aa A 192.0.2.1" {
		t.Error(got)
	}
	before := m.zones[0].zone.Current()
	p.mu.Lock()
	p.err, p.zones["z"] = nil, []string{soa, "www.example.org. 60 A 192.0.2.2"}
	p.mu.Unlock()
	eventually.Holds(t, "the change", func() bool { return m.zones[0].zone.Current() != before })
	if got := ask(t, m, "www.example.org.", dns.TypeA); got != "NOERROR aa A 192.0.2.2" {
		t.Error(got)
	}
}

// Some providers never raise a serial: an SOA record that is another one is served all the same.
func TestSOAOfTheSameSerial(t *testing.T) {
	p := &provider{zones: map[string][]string{"z": {soa, "www.example.org. 60 A 192.0.2.1"}}}
	m, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "z"})
	if err != nil {
		t.Fatal(err)
	}
	before := m.zones[0].zone.Current()
	p.mu.Lock()
	p.zones["z"] = []string{"example.org. 300 IN SOA ns.example.org. host.example.org. 1 2 3 4 60", "www.example.org. 60 A 192.0.2.1"}
	p.mu.Unlock()
	eventually.Holds(t, "the change", func() bool { return m.zones[0].zone.Current() != before })
	if got := ask(t, m, "example.org.", dns.TypeSOA); got != "NOERROR aa SOA ns.example.org. host.example.org. 1 2 3 4 60" {
		t.Error(got)
	}
	v := m.zones[0].zone.Current()
	p.mu.Lock()
	p.asked = 0
	p.mu.Unlock()
	eventually.Holds(t, "another reading", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.asked > 2 })
	if m.zones[0].zone.Current() != v {
		t.Error("a zone that is as it was is replaced")
	}
}

// A provider that never answers is given up: zones are read again later.
func TestSilentProvider(t *testing.T) {
	p := &provider{zones: map[string][]string{"z": {soa, "www.example.org. 60 A 192.0.2.1"}}}
	m, err := New(Config{
		Plugin: "mirrored", Hosted: []Hosted{{"example.org.", "z"}}, Refresh: 20 * time.Millisecond,
		Fetch: func(ctx context.Context, h Hosted, warn Warn) ([]dns.RR, error) {
			all, err := p.fetch(ctx, h, warn)
			p.mu.Lock()
			silent := p.asked == 2
			p.mu.Unlock()
			if silent {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return all, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.readTime = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); m.End() }()
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "another reading", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.asked > 2 })
}

// Each zone has its own time to be read at the start: hundreds of them take longer than one may.
func TestFirstTimes(t *testing.T) {
	var ends []time.Time
	zones := []Hosted{{"example.org.", "1"}, {"example.net.", "2"}, {"example.com.", "3"}}
	m, err := New(Config{
		Plugin: "mirrored", Hosted: zones, Refresh: time.Hour,
		Fetch: func(ctx context.Context, h Hosted, _ Warn) ([]dns.RR, error) {
			end, ok := ctx.Deadline()
			if !ok {
				t.Errorf("%s may take for ever", h.Zone)
			}
			ends = append(ends, end)
			for !time.Now().After(end.Add(-firstTime)) { // the clock may be a coarse one
			}
			rr, err := dns.NewRR(h.Zone + " 300 IN SOA ns host 1 2 3 4 5")
			return []dns.RR{rr}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer func() { cancel(); m.End() }()
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(ends) != len(zones) || !ends[1].After(ends[0]) || !ends[2].After(ends[1]) {
		t.Errorf("the zones may be read until %v", ends)
	}
}

// A provider that fails at the start is not asked for the other zones.
func TestFirstFailure(t *testing.T) {
	p := &provider{err: errors.New("as it should")}
	if _, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "1"}, Hosted{"example.net.", "2"}); err == nil || p.asked != 1 {
		t.Errorf("asked %d times: %v", p.asked, err)
	}
}

// A start that fails leaves nothing behind in the metrics: after a reload that failed they would tell of its zones for ever.
func TestFailedStartIsNotTold(t *testing.T) {
	p := &provider{zones: map[string][]string{"good": {soa}}} // the other one has no SOA record
	if _, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "good"}, Hosted{"example.net.", "bad"}); err == nil || p.asked != 2 {
		t.Fatalf("asked %d times: %v", p.asked, err)
	}
	if got := testutil.ToFloat64(lastSuccess.WithLabelValues("mirrored", "example.org.", "good")); got > 0 {
		t.Errorf("a zone that no configuration has was read at %v", got)
	}
}

// What is odd in a zone is told of once, and again when it was gone meanwhile; a reading that fails says nothing of that.
func TestWarnings(t *testing.T) {
	out := logtest.Capture(t)
	p := &provider{zones: map[string][]string{"z": {soa, "odd one", "odd two", "odd two"}}}
	m, err := mirrored(t, p, fall.F{}, Hosted{"example.org.", "z"})
	if err != nil {
		t.Fatal(err)
	}
	read := func(zone []string, err error) {
		p.mu.Lock()
		p.zones["z"], p.err, p.asked = zone, err, 0
		p.mu.Unlock()
		eventually.Holds(t, "readings", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.asked > 2 })
	}
	read(p.zones["z"], nil)
	read(nil, errors.New("as it should"))
	read([]string{soa, "odd two", "www.example.net. 60 A 192.0.2.1"}, nil)
	read([]string{soa, "odd one", "odd two", "bare.example.org. 60 TXT "}, nil)
	if strings.Count(out.String(), " of example.org.: no data") != 1 {
		t.Error("a text without strings, with which nobody would read a transfer, is taken")
	}
	if one, two, outside := strings.Count(out.String(), "one is odd"), strings.Count(out.String(), "two is odd"), strings.Count(out.String(), "is not in zone"); one != 2 || two != 1 || outside != 1 || !m.Ready() {
		t.Errorf("told %d, %d and %d times", one, two, outside)
	}
}

func TestFirstTimeFails(t *testing.T) {
	m, err := mirrored(t, &provider{err: errors.New("as it should")}, fall.F{}, Hosted{"example.org.", "z"})
	if err == nil || !strings.Contains(err.Error(), "example.org. (z): as it should") || m.Ready() {
		t.Error(err)
	}
	if _, err := New(Config{Hosted: []Hosted{{"a..b.", "z"}}}); err == nil {
		t.Error("no error")
	}
}

// When a zone was read last is not told of zones that no configuration has any more.
func TestLastSuccessEnds(t *testing.T) {
	p := &provider{zones: map[string][]string{"gone": {soa}}}
	var ends []func()
	for range 2 { // a reload
		m, err := New(Config{Plugin: "mirrored", Hosted: []Hosted{{Zone: "example.org.", ID: "gone"}}, Fetch: p.fetch, Refresh: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := m.Run(ctx); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() { cancel(); m.End() })
	}
	told := func() bool {
		return testutil.ToFloat64(lastSuccess.WithLabelValues("mirrored", "example.org.", "gone")) > 0
	}
	ends[0]()
	if !told() {
		t.Error("nothing is told of a zone that another configuration has")
	}
	ends[1]()
	if told() {
		t.Error("it is told of a zone that is gone")
	}
}
