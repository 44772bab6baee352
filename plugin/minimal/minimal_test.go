package minimal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// source answers with one message in both lanes.
type source struct{ reply *dns.Msg }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := s.reply.Copy()
	m.Id, m.Question = r.Id, r.Question
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	m := s.reply.Copy()
	m.Question = []dns.Question{{Name: wire.Text(q.Name()), Qtype: q.Type(), Qclass: q.Class()}}
	if err := w.SetMsg(m); err != nil {
		panic(err)
	}
	w.SetWriter("source")
	return wire.Done
}

// reply makes a message of three sections, a record a line.
func reply(rcode int, sections ...string) *dns.Msg {
	m := new(dns.Msg)
	m.Response, m.Rcode, m.Authoritative, m.RecursionAvailable = true, rcode, true, true
	for i, to := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		if i >= len(sections) {
			break
		}
		for line := range strings.Lines(sections[i]) {
			rr, err := dns.NewRR(strings.TrimSpace(line))
			if err != nil {
				panic(err)
			}
			*to = append(*to, rr)
		}
	}
	return m
}

// lanes asks h in both lanes.
func lanes(t testing.TB, h handler, query *dns.Msg) (message, bytes *dns.Msg, plain int) {
	t.Helper()
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := h.ServeDNS(t.Context(), rec, query); rc != dns.RcodeSuccess || err != nil {
		t.Fatalf("message lane: %d, %v", rc, err)
	}
	packet, _ := query.Pack()
	q, w := new(wire.Query), new(wire.Reply)
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	w.Reset(make([]byte, 4096))
	if out := h.ServeWire(t.Context(), w, q); out != wire.Done || w.Writer() != "source" {
		t.Fatalf("wire lane: %v by %q", out, w.Writer())
	}
	bytes, err := w.Msg(query)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Msg, bytes, w.PlainLen()
}

func brief(m *dns.Msg) string {
	s := dns.RcodeToString[m.Rcode]
	for _, b := range []struct {
		on   bool
		name string
	}{{m.Authoritative, " aa"}, {m.RecursionAvailable, " ra"}, {m.Truncated, " tc"}} {
		if b.on {
			s += b.name
		}
	}
	for i, rrs := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			s += "\n" + []string{"answer ", "authority ", "additional "}[i] + strings.ReplaceAll(rr.String(), "\t", " ")
		}
	}
	return s
}

const (
	a      = "www.example.org. 300 IN A 192.0.2.1"
	alias  = "www.example.org. 300 IN CNAME web.example.org."
	target = "WEB.example.org. 300 IN A 192.0.2.1"
	soa    = "example.org. 300 IN SOA ns.example.org. root.example.org. 1 2 3 4 5"
	ns     = "example.org. 300 IN NS ns.example.org."
	glue   = "ns.example.org. 300 IN A 192.0.2.53"
)

func TestBothLanes(t *testing.T) {
	for name, tc := range map[string]struct {
		qtype uint16
		reply *dns.Msg
		want  *dns.Msg // nil: the same
	}{
		"positive":                {dns.TypeA, reply(0, a, ns, glue), reply(0, a)},
		"positive and SOA":        {dns.TypeA, reply(0, a, soa, glue), reply(0, a)},
		"nothing to leave out":    {dns.TypeA, reply(0, a), nil},
		"empty with additional":   {dns.TypeA, reply(0, "", "", glue), reply(0)},
		"NODATA":                  {dns.TypeA, reply(0, "", soa, glue), nil},
		"NXDOMAIN":                {dns.TypeA, reply(dns.RcodeNameError, "", soa, glue), nil},
		"NXDOMAIN behind alias":   {dns.TypeA, reply(dns.RcodeNameError, alias, soa), nil},
		"referral":                {dns.TypeA, reply(0, "", ns, glue), nil},
		"SERVFAIL":                {dns.TypeA, reply(dns.RcodeServerFailure, "", ns, glue), nil},
		"REFUSED":                 {dns.TypeA, reply(dns.RcodeRefused, "", ns), nil},
		"alias and target":        {dns.TypeA, reply(0, alias+"\n"+target, soa, glue), reply(0, alias+"\n"+target)},
		"alias without target":    {dns.TypeA, reply(0, alias, ns, glue), reply(0, alias)},
		"NODATA behind alias":     {dns.TypeAAAA, reply(0, alias+"\n"+target, soa), nil},
		"alias asked for":         {dns.TypeCNAME, reply(0, alias, soa, glue), reply(0, alias)},
		"ANY":                     {dns.TypeHINFO, reply(0, "www.example.org. 1 IN HINFO a b", soa), reply(0, "www.example.org. 1 IN HINFO a b")},
		"alias of two names":      {dns.TypeA, reply(0, "www.example.org. 300 IN CNAME x.example.org.\n"+alias+"\n"+target, soa), nil},
		"the same alias twice":    {dns.TypeA, reply(0, alias+"\n"+alias+"\n"+target, soa), reply(0, alias+"\n"+alias+"\n"+target)},
		"a circle":                {dns.TypeA, reply(0, alias+"\nweb.example.org. 1 IN CNAME www.example.org.", soa), nil},
		"record beside the chain": {dns.TypeA, reply(0, alias+"\nother.example.org. 1 IN A 192.0.2.9", soa), nil},
		"another class":           {dns.TypeTXT, reply(0, "www.example.org. 1 CH TXT x", ns), nil},
		"names in RDATA": {dns.TypeMX, reply(0, "www.example.org. 1 IN MX 5 mx.example.org.\nwww.example.org. 1 IN MX 6 mx2.mx.example.org.", ns, glue),
			reply(0, "www.example.org. 1 IN MX 5 mx.example.org.\nwww.example.org. 1 IN MX 6 mx2.mx.example.org.")},
		"SOA asked for": {dns.TypeSOA, reply(0, strings.Replace(soa, "example", "www.example", 1), ns, glue), reply(0, strings.Replace(soa, "example", "www.example", 1))},
		"SRV":           {dns.TypeSRV, reply(0, "www.example.org. 1 IN SRV 1 2 3 www.example.org.", ns, glue), reply(0, "www.example.org. 1 IN SRV 1 2 3 www.example.org.")},
	} {
		query := new(dns.Msg).SetQuestion("wWw.example.org.", tc.qtype)
		message, bytes, plain := lanes(t, handler{Next: source{tc.reply}}, query)
		want := tc.reply
		if tc.want != nil {
			want = tc.want
		}
		if got := brief(message); got != brief(want) {
			t.Errorf("%s, message lane: got\n%s\nwant\n%s", name, got, brief(want))
		}
		if got := brief(bytes); !strings.EqualFold(got, brief(want)) {
			t.Errorf("%s, wire lane: got\n%s\nwant\n%s", name, got, brief(want))
		}
		message.Compress = false
		if plain != message.Len() {
			t.Errorf("%s: the lanes count %d and %d octets", name, message.Len(), plain)
		}
		if message.Question[0].Name != "wWw.example.org." || bytes.Question[0].Name != "wWw.example.org." {
			t.Errorf("%s: asked for %v and %v", name, message.Question, bytes.Question)
		}
	}
}

// The OPT record of an upstream is left out with the rest, and its options.
func TestUpstreamOPT(t *testing.T) {
	for name, tc := range map[string]struct {
		reply *dns.Msg
		keeps bool
	}{
		"alone":    {reply(0, a), false},
		"and more": {reply(0, a, ns, glue), false},
		"denial":   {reply(dns.RcodeNameError, "", soa), true},
	} {
		m := tc.reply
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 3}}
		query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		handler{Next: source{m}}.ServeDNS(t.Context(), rec, query)
		packet, _ := query.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		w.Reset(nil)
		handler{Next: loaded{m}}.ServeWire(t.Context(), &w, &q)
		_, opt := w.OPT()
		_, ede := w.Option(wire.OptionEDE)
		if opt != tc.keeps || ede != tc.keeps || (rec.Msg.IsEdns0() != nil) != tc.keeps || w.PlainLen() != rec.Msg.Len() {
			t.Errorf("%s: OPT %v, option %v, %d octets, message lane %v, %d", name, opt, ede, w.PlainLen(), rec.Msg, rec.Msg.Len())
		}
	}
}

// loaded answers in the wire lane with what came from elsewhere.
type loaded struct{ reply *dns.Msg }

func (l loaded) Name() string             { return "loaded" }
func (l loaded) WireSelf() plugin.Handler { return l }
func (l loaded) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (l loaded) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	m := l.reply.Copy()
	m.Question = []dns.Question{{Name: wire.Text(q.Name()), Qtype: q.Type(), Qclass: q.Class()}}
	if err := w.SetMsgOPT(m); err != nil {
		panic(err)
	}
	return wire.Done
}

// A reply that says DO and has a signature out of its time is no positive one.
func TestExpiredSignature(t *testing.T) {
	m := reply(0, a+"\nwww.example.org. 1 IN RRSIG A 8 3 1 20200101000000 20190101000000 1 example.org. AAAA", ns)
	m.SetEdns0(1232, true)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	handler{Next: source{m}}.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if len(rec.Msg.Ns) != 1 {
		t.Errorf("got %v", rec.Msg)
	}
}

// What a plugin wrote may be kept by it.
func TestMessageStays(t *testing.T) {
	m := reply(0, a, ns, glue)
	writes := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m.Question = r.Question
		return 0, w.WriteMsg(m)
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	handler{Next: writes}.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if len(m.Ns) != 1 || len(m.Extra) != 1 || len(rec.Msg.Ns) != 0 {
		t.Errorf("%v became %v", m, rec.Msg)
	}
}

func TestWithoutReply(t *testing.T) {
	failed := errors.New("failed")
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for name, tc := range map[string]struct {
		next    plugin.Handler
		rcode   int
		err     error
		written bool
	}{
		"drop":                 {test.NextHandler(dns.RcodeSuccess, nil), dns.RcodeSuccess, nil, false},
		"unwritten":            {test.NextHandler(dns.RcodeServerFailure, nil), dns.RcodeServerFailure, nil, false},
		"error":                {test.NextHandler(dns.RcodeRefused, failed), dns.RcodeRefused, failed, false},
		"written all the same": {test.ErrorHandler(), dns.RcodeSuccess, nil, true},
		"nobody":               {nil, dns.RcodeServerFailure, nil, false},
	} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rcode, err := handler{Next: tc.next}.ServeDNS(t.Context(), rec, query)
		if rcode != tc.rcode || tc.next != nil && err != tc.err || (rec.Msg != nil) != tc.written {
			t.Errorf("%s: got %d, %v, %v", name, rcode, err, rec.Msg)
		}
	}
}

func TestTransfersPass(t *testing.T) {
	for _, qtype := range []uint16{dns.TypeAXFR, dns.TypeIXFR} {
		rec := dnstest.NewMultiRecorder(&test.ResponseWriter{TCP: true})
		next := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			for i := range 3 {
				m := reply(0, soa, ns)
				if i == 0 {
					m.Question = r.Question // the others need none (RFC 5936 §2.2.1)
				}
				w.WriteMsg(m)
			}
			return 0, nil
		})
		handler{Next: next}.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("example.org.", qtype))
		if len(rec.Msgs) != 3 || len(rec.Msgs[2].Ns) != 1 {
			t.Errorf("%d messages passed", len(rec.Msgs))
		}
	}
}

func TestOutcomesPass(t *testing.T) {
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	q.Parse(packet)
	for _, want := range []wire.Outcome{wire.Unpack, wire.Block, wire.Park} {
		var w wire.Reply
		w.Reset(nil)
		if got := (handler{Next: outcome(want)}).ServeWire(t.Context(), &w, &q); got != want {
			t.Errorf("%v became %v", want, got)
		}
	}
	var w wire.Reply
	w.Reset(nil)
	if out := (handler{}).ServeWire(t.Context(), &w, &q); out != wire.Done || !w.Failed() || w.Err() == nil {
		t.Errorf("without a next plugin: %v", out)
	}
}

type outcome wire.Outcome

func (o outcome) Name() string             { return "outcome" }
func (o outcome) WireSelf() plugin.Handler { return o }
func (o outcome) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (o outcome) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Outcome(o)
}

func TestSetup(t *testing.T) {
	for input, want := range map[string]string{
		"minimal":         "",
		"minimal more":    "plugin/minimal: Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after 'more'",
		"minimal {\nx\n}": "unknown property 'x'",
	} {
		c := caddy.NewTestController("dns", input)
		err := setup(c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", input, err, want)
		}
		if n := len(dnsserver.GetConfig(c).Plugin); (n == 1) != (want == "") {
			t.Errorf("%q: %d plugins", input, n)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// Any reply leaves both lanes alike.
func FuzzLanes(f *testing.F) {
	for _, m := range []*dns.Msg{reply(0, a, ns, glue), reply(0, alias+"\n"+target, soa), reply(3, "", soa), reply(0, "", ns, glue)} {
		m.Question = []dns.Question{{Name: "www.example.org.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}
		packed, _ := m.Pack()
		f.Add(packed)
		m.Compress = true
		packed, _ = m.Pack()
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		m := new(dns.Msg)
		if m.Unpack(packed) != nil || len(m.Question) != 1 || m.Opcode != dns.OpcodeQuery || m.Rcode > 15 || m.IsEdns0() != nil {
			return
		}
		var probe wire.Reply
		probe.Reset(make([]byte, 4096))
		if probe.SetMsg(m) != nil || len(probe.Bytes()) > 4096 {
			return
		}
		query := &dns.Msg{Question: m.Question}
		packet, err := query.Pack()
		if err != nil || !new(wire.Query).Parse(packet) {
			return
		}
		// Both begin with what can be packed at all.
		same, err := probe.Msg(query)
		if err != nil {
			return
		}
		message, bytes, _ := lanes(t, handler{Next: source{same}}, query)
		if x, y := brief(message), brief(bytes); !strings.EqualFold(x, y) {
			t.Fatalf("message lane\n%s\nwire lane\n%s", x, y)
		}
	})
}

func BenchmarkServeWire(b *testing.B) {
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	packet, _ := query.Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	m := reply(0, a, ns, glue)
	m.Question = query.Question
	var full wire.Reply
	full.Reset(make([]byte, 512))
	full.SetMsg(m)
	packed := full.Pack()
	buf := make([]byte, 512)
	h := handler{Next: loads{&packed}}
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		h.ServeWire(b.Context(), w, q)
	}
	if w.Count(wire.Authority) > 0 {
		b.Fatal("not shortened")
	}
}

type loads struct{ packed *wire.Packed }

func (l loads) Name() string             { return "loads" }
func (l loads) WireSelf() plugin.Handler { return l }
func (l loads) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (l loads) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	w.Load(l.packed, q)
	return wire.Done
}

// A resolver's reply remains one when it is shortened: a cache above gives its hits no AA.
func TestResolversReply(t *testing.T) {
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	packet, _ := query.Pack()
	var q wire.Query
	var w wire.Reply
	q.Parse(packet)
	w.Reset(make([]byte, 512))
	m := reply(0, a, ns, glue)
	m.Question = query.Question
	if err := w.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	w.SetNonAuthoritative(true)
	handler{}.Edit(&w, &q)
	if len(w.Recs()) != 1 || !w.NonAuthoritative() {
		t.Errorf("%d records, non-authoritative: %v", len(w.Recs()), w.NonAuthoritative())
	}
}

// Records of a long reply hold pointers to addresses before them. Who puts it into another order above, or stores it, has
// to know of that: else records get other owners.
func TestLongReplyInAnotherOrder(t *testing.T) {
	const many = 1200
	m := reply(0, "www.example.org. 300 IN CNAME addresses-of-a-service.in-some-namespace.example.net.", ns, glue)
	for i := range many {
		rr, err := dns.NewRR(fmt.Sprintf("addresses-of-a-service.in-some-namespace.example.net. 300 IN MX %d mail-server-of-this-name.example.com.", i))
		if err != nil {
			t.Fatal(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeMX)
	packet, _ := query.Pack()
	var q wire.Query
	var w, stored wire.Reply
	q.Parse(packet)
	w.Reset(nil)
	handler{Next: source{m}}.ServeWire(t.Context(), &w, &q)
	packed := w.Pack()
	stored.Reset(nil)
	stored.Load(&packed, &q)
	order := []uint16{0}
	for i := range many {
		order = append(order, uint16(many-i))
	}
	for what, w := range map[string]*wire.Reply{"as it was": &w, "stored": &stored} {
		w.Reorder(order)
		got, err := w.Msg(query)
		if err != nil || len(got.Answer) != many+1 || len(got.Ns)+len(got.Extra) > 0 {
			t.Fatalf("%s: %v, %v", what, got, err)
		}
		for i, rr := range got.Answer {
			if want := m.Answer[order[i]]; rr.String() != want.String() {
				t.Errorf("%s: record %d is %v, want %v", what, i, rr, want)
				break
			}
		}
	}
}
