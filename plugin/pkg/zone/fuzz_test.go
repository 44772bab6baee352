package zone

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// FuzzAnswer asks zones out of seeds for any name and type: nothing panics, each reply can be read, its pointers lead
// to names before them, no record stands there twice, and a denial has the SOA record.
func FuzzAnswer(f *testing.F) {
	for seed := range uint64(8) {
		for i, q := range zonetest.New("example.org.", seed).Questions(seed, 12) {
			f.Add(seed, strings.TrimSuffix(q.Name, "example.org."), dns.StringToType[q.Type], i%2 == 0)
		}
	}
	f.Add(uint64(1), "X.*.", uint16(46), true)
	zones := map[uint64]*Zone{}
	f.Fuzz(func(t *testing.T, seed uint64, name string, typ uint16, do bool) {
		seed %= 256
		z := zones[seed]
		if z == nil {
			z = build(t, "example.org.", zonetest.New("example.org.", seed).Text)
			zones[seed] = z
		}
		if name != "" && !strings.HasSuffix(name, ".") {
			name += "."
		}
		m := new(dns.Msg).SetQuestion(name+"example.org.", typ)
		if do {
			m.SetEdns0(1232, true)
		}
		p, err := m.Pack()
		if err != nil {
			return
		}
		var q wire.Query
		if !q.Parse(p) || !wire.Below(q.Lower(), z.Origin()) {
			return
		}
		if err := m.Unpack(p); err != nil { // as names are written then
			t.Fatal(err)
		}
		checkReply(t, z, &q, m)
	})
}

// checkReply answers q and looks at the reply.
func checkReply(t *testing.T, z *Zone, q *wire.Query, m *dns.Msg) {
	t.Helper()
	what := m.Question[0].String()
	var w wire.Reply
	w.Reset(make([]byte, 0, 2048))
	var a Answerer
	r := a.Answer(z, &w, q)
	if r == External {
		if wire.NameLen(a.Target) != len(a.Target) || !z.LeadsOut() || wire.Below(a.Target, z.Origin()) && !z.lacks(z.Find(a.Target)) {
			t.Errorf("%s: leads to %q", what, a.Target)
		}
		r = a.Alone()
	}
	for i, rec := range w.Recs() {
		if _, ok := wire.AppendNameAt(nil, w.Bytes(), int(rec.Off)); !ok {
			t.Errorf("%s: record %d has no proper owner", what, i)
		}
		if off := targetOffset(rec.Type); off >= 0 || rec.Type == wire.TypeCNAME || rec.Type == wire.TypeSOA {
			if _, ok := wire.AppendNameAt(nil, w.Bytes(), int(rec.TTL)+6+max(off, 0)); !ok {
				t.Errorf("%s: record %d has no proper target", what, i)
			}
		}
	}
	plain := w.PlainLen()
	got := new(dns.Msg)
	b := w.Finish(q, 1232)
	if err := got.Unpack(b); err != nil {
		t.Fatalf("%s: %v\n%x", what, err, b)
	}
	if got.Question[0] != m.Question[0] || got.Id != m.Id || !got.Response {
		t.Errorf("%s: answered %v", what, got.Question)
	}
	seen := map[string]bool{}
	soa := false
	for _, rrs := range [][]dns.RR{got.Answer, got.Ns, got.Extra} {
		for _, rr := range rrs {
			line := strings.ToLower(rr.String())
			if seen[line] {
				t.Errorf("%s: twice: %s", what, line)
			}
			seen[line] = true
		}
	}
	for _, rr := range got.Ns {
		soa = soa || rr.Header().Rrtype == dns.TypeSOA
	}
	if denied := r == NoData || r == Empty || r == NXDomain; denied != soa && !got.Truncated {
		t.Errorf("%s: result %d, SOA record %v", what, r, soa)
	}
	if got.Truncated || q.EDNS().Present {
		return
	}
	got.Compress = false
	if again, err := got.Pack(); err != nil || len(again) != plain {
		t.Errorf("%s: plain length %d, want %d (%v)", what, plain, len(again), err)
	}
}
