// Package validator finds out whether what the plugins below it answer is what the owners of the zones signed (RFC 4033
// to 4035), and withholds what is not.
//
//	query ──ServeDNS──▶ inquiry.go: the plugins below, with DO and CD ──reply──▶ validate.Task ──▶ edit.go ──▶ client
//	                     ▲    what is missing: DS, DNSKEY; what is bogus, of other servers: retry.go │
//	                     └───────────────────────────────────────────────────────────────────────────┘
//
// In the wire lane (lane.go) a reply of which all is known is judged at once; with any other the query is parked on a
// check (check.go), which goes on as an inquiry if something is missing. It works above recurse and above forward alike.
// What was found out lies in a memory, so nothing is computed twice; renew.go keeps keys in it that are in use, and
// handover.go hands it on at a reload. The check itself is package validate's. Start at Validator.ServeDNS.
package validator

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "validator"

// patience is how long a client waits if no resolver below tells.
func patience() time.Duration { return 5 * time.Second }

var logger = log.NewWithPlugin(pluginName)

// Validator is the handler of one server block.
type Validator struct {
	Next    plugin.Handler
	learner advice.Learner          // the resolver below, nil if there is none
	guard   advice.Guard            // the same
	insider advice.Insider          // the same
	block   func() []plugin.Handler // those of the server block

	prefetches func() bool // reports whether the resolver below does; may be nil
	text       string      // by which it is told from others; see dnsserver.Identity
	*settings
	counts   *counts
	patience func() time.Duration // how long a client waits, with all that is asked for its sake

	fetches   fetches
	strips    sync.Map // upstreams that were told of, see inquiry.stripped
	failures  generations[validate.Question, failure]
	memory    *memory
	negatives ntas
	live      atomic.Pointer[trust] // written by the keeper
	keeper    *keeper
}

// Name is the plugin's name.
func (v *Validator) Name() string { return pluginName }

// WireSelf implements plugin.WireHandler.
func (v *Validator) WireSelf() plugin.Handler { return v }

// covers reports whether a lower-case name is in the zones.
func (v *Validator) covers(name []byte) bool {
	for _, z := range v.zones {
		if wire.Below(name, []byte(z)) {
			return true
		}
	}
	return false
}

// ServeDNS validates what the plugins below answer.
func (v *Validator) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	q, ok := v.question(r)
	if !ok {
		return plugin.NextOrFailure(pluginName, v.Next, ctx, w, r)
	}
	if r.CheckingDisabled {
		rcode, _, err := plugin.EditReplies(unchecked{v}, v.Next, ctx, w, r)
		return rcode, err
	}
	if f, ok := v.known(q); ok {
		v.counts.result(f)
		return dns.RcodeServerFailure, failed(f)
	}
	began := time.Now()
	i := &inquiry{Validator: v, client: ctx, ctx: ctx, place: eventloop.PlaceOf(ctx), w: w, q: q, query: inner(r), sources: map[validate.Question]*advice.Source{}}
	reply, rcode, err := i.ask(q, i.query)
	if reply == nil {
		return rcode, err
	}
	defer i.hurry(began)()
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer a.Free()
	if err := a.Reply.SetMsgOPT(reply); err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	if !r.RecursionDesired { // few ask like that
		if m, err := parse(reply); err == nil && refers(m) {
			v.edit(&a.Reply, &a.Query, &referred)
			return a.Write()
		}
	}
	nonAuthoritative := i.nonAuthoritative
	verdict, judged := i.judge(reply)
	if i.gaveWay { // nobody has judged the reply
		return dns.RcodeServerFailure, plugin.Error(pluginName, eventloop.ErrGaveWay)
	}
	metadata.SetValueFunc(ctx, "validator/status", verdict.Status.String)
	if judged != reply {
		a.Reply.Reset(nil)
		if err := a.Reply.SetMsgOPT(judged); err != nil {
			return dns.RcodeServerFailure, plugin.Error(pluginName, err)
		}
	}
	a.Reply.SetNonAuthoritative(nonAuthoritative)
	v.conclude(&a.Reply, &a.Query, q, verdict, i.sources[q].Of(verdict.Name).Server)
	return a.Write()
}

// conclude makes of w, which holds what the plugins below answered, what the client gets, and counts it. server is who told
// it, if that is known.
func (v *Validator) conclude(w *wire.Reply, q *wire.Query, asked validate.Question, verdict *validate.Verdict, server netip.AddrPort) {
	v.keeper.use()
	v.counts.result(verdict)
	if log.D.Value() {
		logger.Debugf("%s %s: %s", rrset.Text(asked.Name), dns.Type(asked.Type), described(verdict))
	}
	if verdict.Status == validate.Bogus {
		if v.logBogus || v.permissive {
			v.log(asked, verdict, server)
		}
		if !v.permissive {
			withhold(w, failed(verdict))
			return
		}
		let := *verdict // others may have it, too
		let.Code, let.Told = dns.ExtendedErrorCodeDNSBogus, true
		verdict = &let
	}
	if v.sentinel && v.denies(asked, verdict) { // that is no failure, and needs no line in the log
		w.DropOPT()
		w.Begin(q)
		w.SetRcode(wire.ServFail)
		w.SetFlag(wire.FlagRA, true)
		w.SetNonAuthoritative(true)
		return
	}
	v.edit(w, q, verdict)
	v.screen(w, q)
}

// described is a verdict in words.
func described(verdict *validate.Verdict) string {
	s := verdict.Status.String()
	if verdict.Text != "" {
		s += ", " + verdict.Text
	}
	return s
}

// withhold makes of w, which holds a reply, a failure that tells nothing of it.
func withhold(w *wire.Reply, err error) {
	w.DropOPT()
	w.Fail(wire.ServFail, err)
}

// failed is the error of a bogus reply.
func failed(verdict *validate.Verdict) error {
	return plugin.Error(pluginName, &explained{verdict.Code, verdict.Text})
}

// refers reports whether a reply is a referral: it says nothing of the name.
func refers(m *rrset.Message) bool {
	if m.Rcode != dns.RcodeSuccess || m.AA() || len(m.Section[rrset.Answer]) > 0 {
		return false
	}
	ns := false
	for _, s := range m.Section[rrset.Authority] {
		if s.Type == dns.TypeSOA {
			return false
		}
		ns = ns || s.Type == dns.TypeNS
	}
	return ns
}

// question is the question of a query that is to be validated, unless CD is set.
func (v *Validator) question(r *dns.Msg) (q validate.Question, ok bool) {
	if len(r.Question) != 1 || r.Opcode != dns.OpcodeQuery || r.Question[0].Qclass != dns.ClassINET {
		return q, false
	}
	name, err := rrset.Name(r.Question[0].Name)
	if err != nil || !v.covers([]byte(name)) {
		return q, false
	}
	return validate.Question{Name: name, Type: r.Question[0].Qtype}, true
}

const udpSize = 1232 // octets of a datagram that the plugins below may get

// inner is the client's query as it is asked below: with DO and CD, so that all comes that is there.
func inner(r *dns.Msg) *dns.Msg {
	m := r.Copy()
	m.CheckingDisabled, m.AuthenticatedData = true, false
	if o := m.IsEdns0(); o != nil {
		o.SetDo()
		o.SetUDPSize(max(o.UDPSize(), udpSize))
	} else {
		m.SetEdns0(udpSize, true)
	}
	return m
}

// fetching is the query for what is missing.
func fetching(q validate.Question) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(rrset.Text(q.Name), q.Type)
	m.CheckingDisabled = true
	m.SetEdns0(udpSize, true)
	return m
}

// stream is a client's writer that looks like one over TCP.
type stream struct{ dns.ResponseWriter }

// RemoteAddr is the client's address, as of TCP.
func (s stream) RemoteAddr() net.Addr {
	if u, ok := s.ResponseWriter.RemoteAddr().(*net.UDPAddr); ok {
		return &net.TCPAddr{IP: u.IP, Port: u.Port, Zone: u.Zone}
	}
	return s.ResponseWriter.RemoteAddr()
}

// joined is a reply that ended with an alias, with those to what the alias leads to.
func joined(reply *dns.Msg, chased []validate.Question, targets map[validate.Question]*dns.Msg) *dns.Msg {
	for _, q := range chased {
		if m := targets[q]; m != nil {
			whole := *reply
			whole.Answer, whole.Ns = slices.Concat(reply.Answer, m.Answer), slices.Concat(reply.Ns, m.Ns)
			reply = &whole
		}
	}
	return reply
}

func parse(reply *dns.Msg) (*rrset.Message, error) {
	b, err := reply.Pack()
	if err != nil {
		return nil, err
	}
	return rrset.Parse(b)
}

// denies reports whether a secure answer is one that a sentinel's label has withheld (RFC 8509 §3).
func (v *Validator) denies(q validate.Question, verdict *validate.Verdict) bool {
	if verdict.Status != validate.Secure || q.Type != dns.TypeA && q.Type != dns.TypeAAAA {
		return false
	}
	label := rrset.FirstLabel(q.Name)
	if tag, ok := strings.CutPrefix(label, "root-key-sentinel-is-ta-"); ok && isTag(tag) {
		return !v.live.Load().tags[tag]
	}
	if tag, ok := strings.CutPrefix(label, "root-key-sentinel-not-ta-"); ok && isTag(tag) {
		return v.live.Load().tags[tag]
	}
	return false
}

// isTag reports whether s is a key tag as a sentinel's label has it: five digits.
func isTag(s string) bool { return len(s) == 5 && strings.Trim(s, "0123456789") == "" && s <= "65535" }

// explained is an error that tells the client why (RFC 8914).
type explained struct {
	code uint16
	text string
}

// Error is the text for the log.
func (e *explained) Error() string { return "bogus: " + e.text }

// ExtendedError is the info code and the extra text of the client's EDE option.
func (e *explained) ExtendedError() (code uint16, text string) { return e.code, e.text }

// Resolves implements edns.Resolver.
func (e *explained) Resolves() {}

// Ready reports whether each anchor has a key that is believed, as far as is known.
func (v *Validator) Ready() bool { return !v.keeper.unready.Load() }

// inside reports whether the resolver below answers for a zone itself.
func (v *Validator) inside(zone string) bool { return v.insider != nil && v.insider.Inside(zone) }

// negative reports whether a negative trust anchor holds for just this name.
func (v *Validator) negative(name string, _ time.Time) bool {
	return v.negatives.holds(name, clock.Now())
}
