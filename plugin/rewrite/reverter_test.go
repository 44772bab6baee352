package rewrite

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

func TestPolicies(t *testing.T) {
	for _, tc := range []struct {
		policy RevertPolicy
		want   string
	}{
		{nil, "NOERROR aa WWW.one.test. A\nWWW.one.test. 60 IN A 192.0.2.1"},
		{NewRevertPolicy(false, false), "NOERROR aa WWW.one.test. A\nWWW.one.test. 60 IN A 192.0.2.1"},
		{NoRevertPolicy(), "NOERROR aa WWW.one.test. A\nweb.two.test. 60 IN A 192.0.2.1"},
		{NoRestorePolicy(), "NOERROR aa web.two.test. A\nWWW.one.test. 60 IN A 192.0.2.1"},
		{NewRevertPolicy(true, true), "NOERROR aa web.two.test. A\nweb.two.test. 60 IN A 192.0.2.1"},
	} {
		rw := serving(t, "rewrite name www.one.test web.two.test", source{new(string), func(name string, _ uint16) *dns.Msg {
			return reply(0, name+" 60 IN A 192.0.2.1")
		}})
		rw.RevertPolicy = tc.policy
		query := new(dns.Msg).SetQuestion("WWW.one.test.", dns.TypeA)
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		rw.ServeDNS(t.Context(), rec, query)
		if got := brief(rec.Msg); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.policy, got, tc.want)
		}
		packet, _ := query.Pack()
		var q wire.Query
		var w wire.Reply
		q.Parse(packet)
		w.Reset(nil)
		out := rw.ServeWire(t.Context(), &w, &q)
		if standard := tc.policy == nil || tc.policy.DoRevert() && tc.policy.DoQuestionRestore(); standard != (out == wire.Done) {
			t.Errorf("%v: %v", tc.policy, out)
		}
	}
}

// What *validator* found to be secure is so for the names that it saw. AD of an upstream is passed on.
func TestValidated(t *testing.T) {
	const question, ad = "www.one.test.", " ad"
	from := func(name string, _ uint16) *dns.Msg {
		m := reply(0, name+" 60 IN CNAME web.test.\nweb.test. 60 IN A 192.0.2.1")
		m.AuthenticatedData = true
		return m
	}
	for _, tc := range []struct {
		rules string
		ad    bool
	}{
		{validating + "rewrite name www.one.test web.two.test", false},
		{validating + "rewrite name suffix .one.test .two.test", false},
		{validating + "rewrite name regex (.*)one.test {1}ONE.test answer auto", true},
		{validating + "rewrite ttl www.one.test 7", true},
		{validating + "rewrite edns0 local set 0xffee x", true},
		{validating + "rewrite name regex (.*)two.test {1}three.test", true},
		{validating + "rewrite rcode www.one.test NXDOMAIN NOERROR", true},
		{validating + "rewrite rcode www.one.test NOERROR NXDOMAIN", false},
		{validating + "rewrite rcode www.one.test 0 23", false}, // in the message lane
		{"rewrite rcode www.one.test NOERROR NXDOMAIN", true},
		{"rewrite name www.one.test web.two.test", true},
	} {
		c, unpacked := agree(t, tc.rules, from, new(dns.Msg).SetQuestion(question, dns.TypeA))
		if got := strings.Contains(strings.SplitN(c.reply, "\n", 2)[0], ad); got != tc.ad || unpacked != strings.HasSuffix(tc.rules, "23") || !strings.Contains(c.reply, "192.0.2.1") {
			t.Errorf("%s: got %s, unpacked: %v", tc.rules, c.reply, unpacked)
		}
	}
	for _, validates := range []bool{true, false} { // an alias that leads elsewhere
		rw := serving(t, "rewrite cname exact web.test. other.test.", source{new(string), from})
		rw.block.validates = validates
		rw.Rules[0].(*cnameRule).upstream = &answers{reply: reply(0, "other.test. 60 IN A 192.0.2.2")}
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := rw.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion(question, dns.TypeA))
		if got := brief(rec.Msg); err != nil || !strings.Contains(got, "192.0.2.2") || strings.Contains(got, ad+" ") == validates {
			t.Errorf("validates: %v, an alias elsewhere: %v %s", validates, err, got)
		}
	}
}

// A name that would become too long stays as it is, and the reply is sent all the same.
func TestTooLongNames(t *testing.T) {
	label := strings.Repeat("a", 62)
	long := strings.Repeat(label+".", 3) + "one.test."
	c, unpacked := agree(t, "rewrite name "+long+" b.test", func(string, uint16) *dns.Msg {
		return reply(0, label+".b.test. 60 IN CNAME "+label+".b.test.\nb.test. 60 IN A 192.0.2.1")
	}, new(dns.Msg).SetQuestion(long, dns.TypeA))
	want := "NOERROR aa " + long + " A\n" + label + ".b.test. 60 IN CNAME " + label + ".b.test.\n" + long + " 60 IN A 192.0.2.1"
	if c.reply != want || unpacked {
		t.Errorf("got %q, want %q", c.reply, want)
	}
}

// A rule of somebody else.
type foreign struct{ result Result }

func (f foreign) Mode() string { return Continue }
func (f foreign) Rewrite(_ context.Context, state request.Request) (ResponseRules, Result) {
	state.Req.Question[0].Name = "foreign.test."
	return ResponseRules{addsText{}}, f.result
}

type addsText struct{}

func (addsText) RewriteResponse(res *dns.Msg, rr dns.RR) {
	if a, ok := rr.(*dns.A); ok {
		res.Extra = append(res.Extra, test.TXT(a.Hdr.Name+" 5 IN TXT foreign"))
	}
}

func TestForeignRule(t *testing.T) {
	var seen string
	kept := reply(0, "foreign.test. 60 IN A 192.0.2.1")
	rw := Rewrite{Rules: []Rule{foreign{RewriteDone}}, Next: source{&seen, func(string, uint16) *dns.Msg { return kept }}}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	query := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA)
	rw.ServeDNS(t.Context(), rec, query)
	if want := "NOERROR aa www.one.test. A\nforeign.test. 60 IN A 192.0.2.1\nextra foreign.test. 5 IN TXT \"foreign\""; brief(rec.Msg) != want || seen != "foreign.test. IN A" {
		t.Errorf("looked up %q, got %q", seen, brief(rec.Msg))
	}
	if len(kept.Extra) > 0 || query.Question[0].Name != "www.one.test." {
		t.Errorf("messages of others were changed: %v, %v", kept, query)
	}
	packet, _ := query.Pack()
	var q wire.Query
	q.Parse(packet)
	rw.Rules = append([]Rule{serving(t, "rewrite continue name www.one.test web.two.test", nil).Rules[0]}, rw.Rules...)
	if out := rw.ServeWire(t.Context(), new(wire.Reply), &q); out != wire.Unpack || q.Changed() {
		t.Errorf("got %v", out)
	}
}

func TestWhatPasses(t *testing.T) {
	var seen string
	rw := serving(t, "rewrite name www.one.test web.two.test", source{&seen, empty})
	refuses := rw
	refuses.Next = test.NextHandler(dns.RcodeRefused, errSource)
	if rc, err := refuses.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeRefused || err != errSource {
		t.Errorf("without question: got %d, %v", rc, err)
	}
	drop := rw
	drop.Next = test.NextHandler(dns.RcodeSuccess, nil)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := drop.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA)); rc != 0 || err != nil || rec.Msg != nil {
		t.Errorf("a drop became %d, %v, %v", rc, err, rec.Msg)
	}
	if rc, err := refuses.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.two.test.", dns.TypeA)); rc != dns.RcodeRefused || err != errSource || rec.Msg != nil {
		t.Errorf("got %d, %v, %v", rc, err, rec.Msg)
	}
	for _, out := range []wire.Outcome{wire.Unpack, wire.Block, wire.Park} {
		packet, _ := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA).Pack()
		var q wire.Query
		q.Parse(packet)
		rw.Next = outcome(out)
		if got := rw.ServeWire(t.Context(), new(wire.Reply), &q); got != out || q.Changed() || string(q.Lower()) != string(wire.MustName("www.one.test.")) {
			t.Errorf("%v became %v, %v", out, got, wire.Text(q.Name()))
		}
	}
	packet, _ := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	q.Parse(packet)
	w.Reset(nil)
	rw.Next = outcome(dropped)
	if out := rw.ServeWire(t.Context(), &w, &q); out != wire.Done || !w.Dropped() {
		t.Errorf("a drop became %v", out)
	}
}

type outcome wire.Outcome

const dropped = 99

func (o outcome) Name() string             { return "outcome" }
func (o outcome) WireSelf() plugin.Handler { return o }
func (o outcome) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (o outcome) ServeWire(_ context.Context, w *wire.Reply, _ *wire.Query) wire.Outcome {
	if o == dropped {
		w.Drop()
		return wire.Done
	}
	return wire.Outcome(o)
}

// secure is a client's writer with TLS, behind a plugin that rewrote before.
type secure struct{ test.ResponseWriter }

func (*secure) ConnectionState() *tls.ConnectionState { return &tls.ConnectionState{ServerName: "x"} }

func TestWriter(t *testing.T) {
	first := NewResponseReverter(&secure{}, new(dns.Msg).SetQuestion("First.test.", dns.TypeA), NewRevertPolicy(false, false))
	second := NewResponseReverter(first, new(dns.Msg).SetQuestion("second.test.", dns.TypeA), NewRevertPolicy(false, false))
	if first.AskedName() != "First.test." || second.AskedName() != "First.test." {
		t.Errorf("asked for %q and %q", first.AskedName(), second.AskedName())
	}
	if second.ConnectionState() == nil || NewResponseReverter(&test.ResponseWriter{}, new(dns.Msg).SetQuestion(".", 1), nil).ConnectionState() != nil {
		t.Error("the TLS state is not the connection's")
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	NewResponseReverter(rec, new(dns.Msg).SetQuestion("www.one.test.", dns.TypeMX), NewRevertPolicy(false, false)).WriteMsg(new(dns.Msg))
	if len(rec.Msg.Question) != 1 || rec.Msg.Question[0].Qtype != dns.TypeMX {
		t.Errorf("a missing question is %v", rec.Msg.Question)
	}
}

// answers is an upstream of cname rules.
type answers struct {
	asked []string
	reply *dns.Msg
	err   error
}

func (a *answers) Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error) {
	loop, _ := ctx.Value(dnsserver.LoopKey{}).(int)
	a.asked = append(a.asked, strings.Join([]string{name, dns.Type(typ).String(), state.QName(), strings.Repeat("+", loop)}, " "))
	return a.reply, a.err
}

func TestCNAME(t *testing.T) {
	const start = "www.one.test. 60 IN CNAME CDN.one.test.\n"
	for _, tc := range []struct {
		rule, answer string
		up           answers
		asked, want  string // answer section and whether it is cut
	}{
		{"cname cdn.one.test origin.two.test", start + "cdn.one.test. 5 IN A 192.0.2.9", answers{reply: reply(0, "origin.two.test. 7 IN A 192.0.2.1")},
			"origin.two.test. A www.one.test. +", start[:20] + "CNAME origin.two.test.\norigin.two.test. 7 IN A 192.0.2.1"},
		{"cname suffix one.test. two.test.", start, answers{reply: reply(0, "cdn.two.test. 7 IN A 192.0.2.1")},
			"cdn.two.test. A www.one.test. +", start[:20] + "CNAME cdn.two.test.\ncdn.two.test. 7 IN A 192.0.2.1"},
		{"cname prefix cdn origin", start, answers{reply: reply(0)}, "origin.one.test. A www.one.test. +", start[:20] + "CNAME origin.one.test."},
		{"cname substring n.on 4.tw", start, answers{reply: reply(0)}, "cd4.twe.test. A www.one.test. +", start[:20] + "CNAME cd4.twe.test."},
		{`cname regex ^(cdn)\.one {1}-x.two`, start, answers{reply: reply(0)}, "cdn-x.two. A www.one.test. +", start[:20] + "CNAME cdn-x.two."},
		{"cname other.one.test origin.two.test", start, answers{}, "", strings.TrimSpace(start)},
		{"cname cdn.one.test origin.two.test", start, answers{err: errors.New("gone")}, "origin.two.test. A www.one.test. +", strings.TrimSpace(start)},
		{"cname cdn.one.test origin.two.test", start, answers{}, "origin.two.test. A www.one.test. +", strings.TrimSpace(start)},
		{"cname cdn.one.test a..b", start, answers{}, "", strings.TrimSpace(start)},
		{"cname cdn.one.test origin.two.test", "www.one.test. 60 IN A 192.0.2.5", answers{}, "", "www.one.test. 60 IN A 192.0.2.5"},
	} {
		rule, err := newRule(strings.Fields(tc.rule))
		if err != nil {
			t.Fatal(err)
		}
		up := tc.up
		rule.(*cnameRule).upstream = &up
		kept := reply(0, tc.answer)
		rw := Rewrite{Rules: []Rule{rule}, Next: source{new(string), func(string, uint16) *dns.Msg { return kept }}}
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		query := new(dns.Msg).SetQuestion("www.one.test.", dns.TypeA)
		rw.ServeDNS(t.Context(), rec, query)
		got := strings.TrimPrefix(brief(rec.Msg), "NOERROR aa www.one.test. A\n")
		if got != tc.want || strings.Join(up.asked, ",") != tc.asked {
			t.Errorf("%s: asked %q, got\n%s\nwant\n%s", tc.rule, up.asked, got, tc.want)
		}
		packet, _ := query.Pack()
		var q wire.Query
		q.Parse(packet)
		if out := rw.ServeWire(t.Context(), new(wire.Reply), &q); out != wire.Unpack {
			t.Errorf("%s: %v", tc.rule, out)
		}
	}
}

// A target that leads to the rule again ends somewhere.
func TestCNAMELoop(t *testing.T) {
	rule, _ := newRule(strings.Fields("cname a.test b.test"))
	up := new(answers)
	rule.(*cnameRule).upstream = up
	up.reply = reply(0, "b.test. 5 IN CNAME a.test.")
	rw := Rewrite{Rules: []Rule{rule}, Next: source{new(string), func(string, uint16) *dns.Msg { return reply(0, "b.test. 5 IN CNAME a.test.") }}}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	ctx := context.WithValue(t.Context(), dnsserver.LoopKey{}, maxLookups)
	rw.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion("b.test.", dns.TypeA))
	if len(up.asked) != 0 || len(rec.Msg.Answer) != 1 {
		t.Errorf("asked %q, got %v", up.asked, rec.Msg)
	}
}

// An error reply that goes by the rules tells why, as the server's own would.
func TestErrorsAreExplained(t *testing.T) {
	const why = "\noption 15 22 (No Reachable Authority): (gone)\noption 15 13 (Cached Error): ()"
	for _, rule := range []string{"name www.example.org www.example.net", "rcode exact www.example.org SERVFAIL SERVFAIL", "ttl exact www.example.org 5"} {
		for size, want := range map[uint16]string{0: "", 1232: why} {
			got, unpacked := agree(t, "rewrite "+rule, func(string, uint16) *dns.Msg { return nil }, withOptions(size, false))
			if got.reply != "SERVFAIL www.Example.org. A"+want || unpacked {
				t.Errorf("%s, size %d: got %s", rule, size, got.reply)
			}
		}
	}
}
