package header

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// source answers with the bits that aa and ra say, and notes the query's.
type source struct {
	aa, ra bool
	seen   *string
}

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.seen = bits(&r.MsgHdr)
	m := new(dns.Msg).SetReply(r)
	m.Authoritative, m.RecursionAvailable = s.aa, s.ra
	return 0, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	var h dns.MsgHdr
	h.Authoritative, h.RecursionAvailable, h.RecursionDesired = q.Flags()&wire.FlagAA != 0, q.Flags()&wire.FlagRA != 0, q.RD()
	*s.seen = bits(&h)
	w.Begin(q)
	w.SetFlag(wire.FlagAA, s.aa)
	w.SetFlag(wire.FlagRA, s.ra)
	return wire.Done
}

func bits(h *dns.MsgHdr) (s string) {
	for _, b := range []struct {
		on   bool
		name string
	}{{h.Authoritative, "aa"}, {h.RecursionAvailable, "ra"}, {h.RecursionDesired, "rd"}} {
		if b.on {
			s += b.name
		}
	}
	return s
}

func serving(t testing.TB, rules string, next plugin.Handler) Header {
	t.Helper()
	c := caddy.NewTestController("dns", "header {\n"+rules+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](next).(Header)
}

func TestBothLanes(t *testing.T) {
	for _, tc := range []struct {
		rules  string
		rd     bool   // of the client
		source string // bits of its reply besides RD
		below  string // the query's bits as the source sees them
		want   string // the reply's bits
		unpack bool
	}{
		{"response set ra", true, "", "rd", "rard", false},
		{"response set aa ra", true, "", "rd", "aarard", false},
		{"response clear aa ra", true, "aara", "rd", "rd", false},
		{"response set aa\nresponse clear aa", true, "aa", "rd", "rd", false},
		{"response clear aa\nresponse set aa", false, "", "", "aa", false},
		{"RESPONSE Set AA", false, "ra", "", "aara", false},
		{"response set rd", true, "", "rd", "rd", false},
		{"response set rd", false, "", "", "rd", true},
		{"response clear rd", true, "", "rd", "", true},
		{"response clear rd", false, "aa", "", "aa", false},
		{"query clear rd", true, "", "", "", true},
		{"query clear rd", false, "", "", "", false},
		{"query set rd", false, "", "rd", "rd", true},
		{"query set aa ra", true, "", "aarard", "rd", false},
		{"query set aa\nquery clear aa", true, "aa", "rd", "aard", false},
		{"query clear rd\nquery set rd", true, "", "rd", "rd", false},
	} {
		var seen string
		h := serving(t, tc.rules, source{strings.Contains(tc.source, "aa"), strings.Contains(tc.source, "ra"), &seen})
		query := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		query.RecursionDesired = tc.rd
		packet, _ := query.Pack()

		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if rc, err := h.ServeDNS(t.Context(), rec, query); rc != 0 || err != nil || seen != tc.below || bits(&rec.Msg.MsgHdr) != tc.want {
			t.Errorf("%q, message lane: got %d, %v, %q from %q", tc.rules, rc, err, bits(&rec.Msg.MsgHdr), seen)
		}

		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		flags := q.Flags()
		w.Reset(make([]byte, 512))
		seen = ""
		out := h.ServeWire(t.Context(), &w, &q)
		if q.Flags() != flags || q.Changed() {
			t.Errorf("%q: the query is given back with %04x instead of %04x", tc.rules, q.Flags(), flags)
		}
		if tc.unpack {
			if out != wire.Unpack || seen != "" {
				t.Errorf("%q, wire lane: got %v, %q", tc.rules, out, seen)
			}
			continue
		}
		reply := new(dns.Msg)
		if err := reply.Unpack(w.Finish(&q, 1232)); out != wire.Done || err != nil || seen != tc.below || bits(&reply.MsgHdr) != tc.want {
			t.Errorf("%q, wire lane: got %v, %v, %q from %q", tc.rules, out, err, bits(&reply.MsgHdr), seen)
		}
	}
}

func TestMessageStays(t *testing.T) {
	kept := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	(&ResponseHeaderWriter{rec, []Rule{{"aa", true}, {"rd", false}, {"none", true}}}).WriteMsg(kept)
	if bits(&kept.MsgHdr) != "rd" || bits(&rec.Msg.MsgHdr) != "aa" {
		t.Errorf("%v became %v", kept, rec.Msg)
	}
}

func TestRawWrite(t *testing.T) {
	out := logtest.Capture(t)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if n, err := (&ResponseHeaderWriter{ResponseWriter: rec}).Write([]byte("abc")); n != 3 || err != nil || rec.Len != 3 {
		t.Errorf("got %d, %v", n, err)
	}
	if want := "[WARNING] plugin/header: ResponseHeaderWriter called with Write: not ensuring headers\n"; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q", out.String())
	}
}

func TestErrorsPass(t *testing.T) {
	h := serving(t, "response set aa", test.NextHandler(dns.RcodeRefused, nil))
	if rc, _ := h.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); rc != dns.RcodeRefused {
		t.Errorf("got %d", rc)
	}
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	q.Parse(packet)
	w.Reset(nil)
	if h.Next = nil; h.ServeWire(t.Context(), &w, &q) != wire.Done || !w.Failed() || w.Flag(wire.FlagAA) {
		t.Error("an error has got AA")
	}
}

func TestSetup(t *testing.T) {
	const wrong = "plugin/header: Testfile:2 - Error during parsing: setting up rule: "
	for _, tc := range []struct {
		input           string
		query, response []Rule
		err             string
	}{
		{"header {\nquery set rd\n}", []Rule{{"rd", true}}, nil, ""},
		{"header {\nresponse set ra aa\nQuery Clear RD\n}", []Rule{{"rd", false}}, []Rule{{"ra", true}, {"aa", true}}, ""},
		{"header {\n}\nheader {\nresponse set aa\n}\nheader {\nresponse set ra\n}", nil, []Rule{{"aa", true}}, ""},
		{"header", nil, nil, "plugin/header: Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after"},
		{"header {}", nil, nil, "Wrong argument count"},
		{"header {\n}", nil, nil, "Wrong argument count"},
		{"header {\nfoo\n}", nil, nil, wrong + "invalid selector=foo should be query or response"},
		{"header {\nset aa\n}", nil, nil, wrong + "invalid selector=set should be query or response"},
		{"header {\nquery\n}", nil, nil, wrong + "no flag action provided"},
		{"header {\nresponse set\n}", nil, nil, wrong + "invalid length for flags, at least one should be provided"},
		{"header {\nquery foo\n}", nil, nil, wrong + "invalid length for flags, at least one should be provided"},
		{"header {\nquery foo rd\n}", nil, nil, wrong + "unknown flag action=foo, should be set or clear"},
		{"header {\nresponse set tc\n}", nil, nil, wrong + "unknown/unsupported flag=tc"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			h := dnsserver.GetConfig(c).Plugin[0](nil).(Header)
			if !slices.Equal(h.QueryRules, tc.query) || !slices.Equal(h.ResponseRules, tc.response) {
				t.Errorf("%q: got %v", tc.input, h)
			}
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// Lines are rules, or an error, and never anything else.
func FuzzParseRules(f *testing.F) {
	for _, line := range []string{"set aa", "clear ra rd", "Set", "", "toggle aa", "set tc aa"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		rules, err := parseRules(words)
		if err != nil {
			if len(rules) > 0 {
				t.Fatalf("%q: %v and %v", line, rules, err)
			}
			return
		}
		if len(rules) != len(words)-1 {
			t.Fatalf("%q: %v", line, rules)
		}
		for _, r := range rules {
			if r.bit() == 0 || r.State != strings.EqualFold(words[0], "set") {
				t.Fatalf("%q: %v", line, r)
			}
		}
	})
}

func BenchmarkServeWire(b *testing.B) {
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	buf := make([]byte, 512)
	h := serving(b, "response set ra\nresponse clear aa", source{aa: true, seen: new(string)})
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		h.ServeWire(b.Context(), w, q)
	}
}
