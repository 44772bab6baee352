package nsid

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
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

var errFailed = errors.New("failed")

// source answers, or fails for the name fail.example.org.
type source struct{ opt *dns.OPT }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if strings.HasPrefix(r.Question[0].Name, "fail.") {
		return dns.RcodeRefused, errFailed
	}
	m := new(dns.Msg).SetReply(r)
	m.Extra = []dns.RR{test.A("ns.example.org. 5 IN A 192.0.2.1")}
	if s.opt != nil {
		m.Extra = append(m.Extra, s.opt)
	}
	return 0, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if string(wire.FirstLabel(q.Lower())) == "fail" {
		w.Fail(wire.Refused, errFailed)
		return wire.Done
	}
	w.Begin(q)
	if s.opt != nil {
		w.SetOptions(s.opt)
	}
	return wire.Done
}

func query(name string, size uint16, do bool, options ...dns.EDNS0) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	m.SetEdns0(size, do)
	m.IsEdns0().Option = options
	return m
}

// told is the text of the options in a reply, one for each; a reply has at most one OPT record.
func told(t *testing.T, m *dns.Msg) (texts []string) {
	t.Helper()
	n := 0
	for _, rr := range m.Extra {
		opt, ok := rr.(*dns.OPT)
		if !ok {
			continue
		}
		n++
		for _, o := range opt.Option {
			if id, ok := o.(*dns.EDNS0_NSID); ok {
				text, err := hex.DecodeString(id.Nsid)
				if err != nil {
					t.Error(err)
				}
				texts = append(texts, string(text))
			}
		}
	}
	if n > 1 {
		t.Errorf("%d OPT records", n)
	}
	return texts
}

func TestReply(t *testing.T) {
	ask := &dns.EDNS0_NSID{Code: dns.EDNS0NSID}
	cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}
	stale := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: 999}, Option: []dns.EDNS0{
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "00"}, &dns.EDNS0_EDE{InfoCode: 4}}}
	for name, tc := range map[string]struct {
		query *dns.Msg
		next  source
		want  string // "" for none
		rcode int
	}{
		"asked":         {query("www.example.org.", 1400, false, ask), source{}, "Use The Force", 0},
		"with DO":       {query("www.example.org.", 1400, true, ask), source{}, "Use The Force", 0},
		"among others":  {query("www.example.org.", 1400, false, cookie, ask), source{}, "Use The Force", 0},
		"error":         {query("fail.example.org.", 1400, true, ask), source{}, "Use The Force", dns.RcodeRefused},
		"OPT of reply":  {query("www.example.org.", 1400, false, ask), source{stale}, "Use The Force", 0},
		"not asked":     {query("www.example.org.", 1400, true), source{}, "", 0},
		"other options": {query("www.example.org.", 1400, true, cookie), source{}, "", 0},
		"no EDNS":       {new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), source{}, "", 0},
	} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rc, err := Nsid{Next: tc.next, Data: "Use The Force"}.ServeDNS(t.Context(), rec, tc.query)
		if rc != dns.RcodeSuccess || (err != nil) != (tc.rcode != 0) || rec.Msg == nil || rec.Msg.Rcode != tc.rcode {
			t.Errorf("%s: got %d, %v, %v", name, rc, err, rec.Msg)
			continue
		}
		if got := strings.Join(told(t, rec.Msg), "|"); got != tc.want {
			t.Errorf("%s: told %q, want %q", name, got, tc.want)
		}
		if tc.want == "" {
			continue
		}
		opt := rec.Msg.IsEdns0()
		if tc.next.opt != nil {
			if opt.UDPSize() != 999 || len(opt.Option) != 2 || len(stale.Option) != 2 || stale.Option[0].String() == opt.Option[1].String() {
				t.Errorf("%s: got %v of %v", name, opt, stale)
			}
		} else if opt.Do() != tc.query.IsEdns0().Do() || opt.UDPSize() != 1400 {
			t.Errorf("%s: got %v", name, opt)
		}
	}
}

// An error that tells the client why goes with the option, in both lanes.
func TestUnwrittenAndExplained(t *testing.T) {
	n := Nsid{Next: explained{}, Data: "me"}
	r := query("www.example.org.", 1232, true, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := n.ServeDNS(t.Context(), rec, r); rc != dns.RcodeSuccess || err == nil || rec.Msg == nil {
		t.Fatal(rc, err, rec.Msg)
	}
	o := rec.Msg.IsEdns0().Option
	if len(o) != 3 || o[1].Option() != dns.EDNS0EDE || o[1].String() != "22 (No Reachable Authority): (gone)" || o[2].String() != "13 (Cached Error): ()" {
		t.Errorf("got %v", o)
	}
	if !rec.Msg.RecursionAvailable {
		t.Error("a resolver's error has no RA, which the server would give it")
	}
}

type explained struct{ source }

func (explained) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return dns.RcodeServerFailure, gone{}
}

type gone struct{}

func (gone) Error() string { return "gone" }
func (gone) Resolves()     {}
func (gone) Unwrap() error { return before{} }
func (gone) ExtendedError() (uint16, string) {
	return dns.ExtendedErrorCodeNoReachableAuthority, "gone"
}

// before is told beside it.
type before struct{}

func (before) Error() string                   { return "known" }
func (before) ExtendedError() (uint16, string) { return dns.ExtendedErrorCodeCachedError, "" }

func TestUnwrittenWithoutAsking(t *testing.T) {
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rc, err := Nsid{Next: source{}}.ServeDNS(t.Context(), rec, query("fail.example.org.", 512, false))
	if rc != dns.RcodeRefused || err != errFailed || rec.Msg != nil {
		t.Errorf("got %d, %v, %v", rc, err, rec.Msg)
	}
	drop := test.NextHandler(dns.RcodeSuccess, nil)
	Nsid{Next: drop}.ServeDNS(t.Context(), rec, query("www.example.org.", 512, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}))
	if rec.Msg != nil {
		t.Errorf("a drop became %v", rec.Msg)
	}
}

func TestServeWire(t *testing.T) {
	for _, name := range []string{"www.example.org.", "fail.example.org."} {
		for _, ask := range []bool{false, true} {
			m := query(name, 1400, true)
			if ask {
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}}
			}
			packet, _ := m.Pack()
			var q wire.Query
			var w wire.Reply
			if !q.Parse(packet) {
				t.Fatal("not eligible")
			}
			w.Reset(make([]byte, 512))
			theirs := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "3030"}}}
			n := Nsid{Next: source{theirs}, Data: "Use The Force"}
			if !ask { // nor is there another one
				n.Next = source{}
			}
			if out := n.ServeWire(t.Context(), &w, &q); out != wire.Done {
				t.Fatalf("got %v", out)
			}
			if w.Failed() { // as the server does it
				rcode := w.Rcode()
				w.Begin(&q)
				w.SetRcode(rcode)
			}
			reply := new(dns.Msg)
			if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
				t.Fatal(err)
			}
			want := ""
			if ask {
				want = "Use The Force"
			}
			if got := strings.Join(told(t, reply), "|"); got != want || !reply.IsEdns0().Do() {
				t.Errorf("%s: told %q, want %q", name, got, want)
			}
		}
	}
	var q wire.Query
	packet, _ := query("www.example.org.", 512, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}).Pack()
	q.Parse(packet)
	var w wire.Reply
	w.Reset(nil)
	if out := (Nsid{Next: test.NextHandler(0, nil)}).ServeWire(t.Context(), &w, &q); out != wire.Unpack {
		t.Errorf("got %v", out)
	}
}

func TestSetup(t *testing.T) {
	host, _ := os.Hostname()
	for _, tc := range []struct{ input, data, err string }{
		{"nsid", host, ""},
		{`nsid "ps0"`, "ps0", ""},
		{`nsid "tf 2"`, "tf 2", ""},
		{"nsid Use The Force", "Use The Force", ""},
		{"nsid\nnsid", "", "this plugin can only be used once per Server Block"},
		{"nsid {\nx\n}", "", "unknown property 'x'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			if got := dnsserver.GetConfig(c).Plugin[0](nil).(Nsid).Data; got != tc.data {
				t.Errorf("%q: got %q", tc.input, got)
			}
		}
	}
	if hostname("", nil) != "localhost" || hostname("a", errFailed) != "localhost" || hostname("a", nil) != "a" {
		t.Error("a machine without a name is no localhost")
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkServeWire(b *testing.B) {
	packet, _ := query("www.example.org.", 1232, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}).Pack()
	q, w := new(wire.Query), new(wire.Reply)
	q.Parse(packet)
	buf := make([]byte, 512)
	n := Nsid{Next: source{}, Data: "server 1"}
	b.ReportAllocs()
	for b.Loop() {
		w.Reset(buf)
		n.ServeWire(b.Context(), w, q)
	}
}

// A plugin above the source sees whether its message was cut, as it does without the option.
func TestCut(t *testing.T) {
	cuts := &cutter{}
	m := new(dns.Msg)
	w := &ResponseWriter{ResponseWriter: cuts, Data: "me"}
	if err := w.WriteMsg(m); err != nil || !m.Truncated || len(m.Extra) != 0 {
		t.Error(err, m)
	}
}

type cutter struct{ test.ResponseWriter }

func (*cutter) WriteMsg(m *dns.Msg) error {
	m.Truncated = true
	return nil
}

// The signature of a reply stays its last record.
func TestSignatureStaysLast(t *testing.T) {
	signs := test.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		m.SetTsig("key.", dns.HmacSHA256, 300, 1)
		return dns.RcodeSuccess, w.WriteMsg(m)
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	Nsid{Next: signs, Data: "me"}.ServeDNS(t.Context(), rec, query("www.example.org.", 1232, false, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}))
	if rec.Msg == nil || rec.Msg.IsTsig() == nil || len(told(t, rec.Msg)) != 1 {
		t.Errorf("got %v", rec.Msg)
	}
}
