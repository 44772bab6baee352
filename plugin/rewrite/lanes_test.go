package rewrite

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// source answers in both lanes with what reply makes of the question, and notes what it was asked.
type source struct {
	seen  *string
	reply func(name string, qtype uint16) *dns.Msg // nil reply: SERVFAIL with an error
}

var errSource error = unreachable{}

// unreachable is an error that tells clients why.
type unreachable struct{}

func (unreachable) Error() string { return "no answer" }
func (unreachable) ExtendedError() (uint16, string) {
	return dns.ExtendedErrorCodeNoReachableAuthority, "gone"
}
func (unreachable) Unwrap() error { return before{} }

// before is told beside it.
type before struct{}

func (before) Error() string                   { return "known" }
func (before) ExtendedError() (uint16, string) { return dns.ExtendedErrorCodeCachedError, "" }

func (s source) Name() string             { return "source" }
func (s source) WireSelf() plugin.Handler { return s }

func (s source) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	*s.seen = describe(r)
	m := s.reply(r.Question[0].Name, r.Question[0].Qtype)
	if m == nil {
		return dns.RcodeServerFailure, errSource
	}
	m.Id, m.Response, m.Question, m.RecursionDesired = r.Id, true, r.Question, r.RecursionDesired
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (s source) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	r := new(dns.Msg)
	if err := r.Unpack(q.Append(nil, q.ID())); err != nil {
		panic(err)
	}
	*s.seen = describe(r)
	if has := q.EDNS().Set; has != optionSet(q.EDNS().Options) {
		panic("the options are not those that the query says it has")
	}
	m := s.reply(r.Question[0].Name, r.Question[0].Qtype)
	if m == nil {
		w.Fail(wire.ServFail, errSource)
		return wire.Done
	}
	m.Question = r.Question
	if err := w.SetMsgOPT(m); err != nil {
		panic(err)
	}
	w.SetWriter("source")
	return wire.Done
}

// describe is a query in one line.
func describe(r *dns.Msg) string {
	q := r.Question[0]
	s := fmt.Sprintf("%s %s %s", q.Name, dns.Class(q.Qclass), dns.Type(q.Qtype))
	if opt := r.IsEdns0(); opt != nil {
		s += fmt.Sprintf(" size %d", opt.UDPSize())
		if opt.Do() {
			s += " do"
		}
		for _, o := range opt.Option {
			s += fmt.Sprintf(" %d=%s", o.Option(), o)
		}
	}
	return s
}

// reply makes a message of three sections, a record a line.
func reply(rcode int, sections ...string) *dns.Msg {
	m := new(dns.Msg)
	m.Rcode, m.Authoritative = rcode, true
	for i, to := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		if i >= len(sections) {
			break
		}
		for line := range strings.Lines(sections[i]) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			rr, err := dns.NewRR(line)
			if err != nil {
				panic(err)
			}
			*to = append(*to, rr)
		}
	}
	return m
}

// brief is a reply, a record a line.
func brief(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	s := dns.RcodeToString[m.Rcode]
	if m.Authoritative {
		s += " aa"
	}
	if m.Truncated {
		s += " tc"
	}
	if m.AuthenticatedData {
		s += " ad"
	}
	s += " " + m.Question[0].Name + " " + dns.Type(m.Question[0].Qtype).String()
	for i, rrs := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			if opt, ok := rr.(*dns.OPT); ok {
				for _, o := range opt.Option {
					s += fmt.Sprintf("\noption %d %s", o.Option(), o)
				}
				continue
			}
			s += "\n" + []string{"", "ns ", "extra "}[i] + strings.ReplaceAll(rr.String(), "\t", " ")
		}
	}
	return s
}

// validating begins rules of a block that has *validator*.
const validating = "# validator\n"

// serving is the plugin with rules, a directive each.
func serving(t testing.TB, rules string, next plugin.Handler) Rewrite {
	t.Helper()
	c := caddy.NewTestController("dns", rules)
	if err := setup(c); err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	return dnsserver.GetConfig(c).Plugin[0](next).(Rewrite)
}

// came is what came of a query in a lane.
type came struct {
	seen, reply string
	lookedUp    string // as logs tell it
	err         error
	plain       int // octets
	out         wire.Outcome
}

// lanes asks in both lanes.
func lanes(t testing.TB, rules string, from func(string, uint16) *dns.Msg, query *dns.Msg) (message, bytes came) {
	t.Helper()
	packet, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	before := query.String()
	rw := serving(t, rules, source{&message.seen, from})
	rw.block.validates = strings.HasPrefix(rules, validating)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	ctx, lookedUp := plugin.WithLookedUp(t.Context())
	var rc int
	if rc, message.err = rw.ServeDNS(ctx, rec, query); !plugin.ClientWrite(rc) {
		rec.Msg = new(dns.Msg).SetRcode(query, rc) // as the server does
	}
	if query.String() != before {
		t.Errorf("%s: the client's query was changed from\n%s\nto\n%s", rules, before, query)
	}
	message.reply, message.lookedUp = brief(rec.Msg), strings.ToLower(cmp.Or(lookedUp(), query.Question[0].Name))
	if rec.Msg != nil {
		packed, _ := rec.Msg.Pack() // Msg.Len is not right for all types
		message.plain = len(packed)
	}

	rw.Next = source{&bytes.seen, from}
	var q wire.Query
	var w wire.Reply
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	q.Client, q.Local = netip.MustParseAddrPort("10.240.0.1:40212"), netip.MustParseAddrPort("127.0.0.1:53")
	name, edns := string(q.Name()), *q.EDNS()
	w.Reset(make([]byte, 4096))
	bytes.out = rw.ServeWire(t.Context(), &w, &q)
	if now := q.EDNS(); string(q.Name()) != name || q.Changed() || now.Present != edns.Present || now.Size != edns.Size || !slices.Equal(now.Options, edns.Options) {
		t.Errorf("%s: the query is not given back as it was", rules)
	}
	if bytes.out != wire.Done {
		return message, bytes
	}
	bytes.err, bytes.lookedUp = w.Err(), wire.Text(q.LookedUp())
	if w.Failed() {
		rcode := w.Rcode()
		w.Begin(&q)
		w.SetRcode(rcode)
	}
	bytes.plain = w.PlainLen()
	m := new(dns.Msg)
	flags, opt := w.OPT()
	if err := m.Unpack(w.End(wire.End{ID: query.Id, Flags: wire.FlagRD, Limit: wire.MaxMessage, OPT: opt, OPTFlags: flags})); err != nil {
		t.Fatalf("%s: %v", rules, err)
	}
	bytes.reply = brief(m)
	return message, bytes
}

// agree asks in both lanes and reports what differs. In lanes that agree, it returns what they say; unpacked tells that the wire lane
// left it to the other.
func agree(t testing.TB, rules string, from func(string, uint16) *dns.Msg, query *dns.Msg) (c came, unpacked bool) {
	t.Helper()
	message, bytes := lanes(t, rules, from, query)
	if bytes.out == wire.Unpack {
		if bytes.seen != "" {
			t.Errorf("%s: unpacked behind the source", rules)
		}
		return message, true
	}
	if bytes.out != wire.Done || message.seen != bytes.seen || message.reply != bytes.reply || message.lookedUp != bytes.lookedUp || message.plain != bytes.plain || (message.err == nil) != (bytes.err == nil) {
		t.Errorf("%s, asked for %v: message lane\n%+v\nwire lane\n%+v", rules, query.Question, message, bytes)
	}
	return message, false
}
