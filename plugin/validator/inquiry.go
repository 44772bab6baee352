package validator

import (
	"context"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// inquiry is one client's query with all that is asked for its sake. It is for one goroutine.
type inquiry struct {
	*Validator
	client   context.Context // which ends when the client is gone
	place    eventloop.Place // that his query has
	ctx      context.Context // which ends with his patience, too
	w        dns.ResponseWriter
	q        validate.Question
	query    *dns.Msg
	sources  map[validate.Question]*advice.Source // of what was asked
	purse    advice.Purse                         // of all sources
	spent    int                                  // signatures that were computed
	hashes   int                                  // of NSEC3 that were computed
	looks    int                                  // at RRsets
	recut    []string                             // names at which zones may begin or not, other than was known
	ways     map[validate.Question]*way
	restarts map[validate.Question]int      // how often what was asked of others
	avoided  []string                       // upstreams of a forwarder that were wrong about something, twice
	last     map[validate.Question]*dns.Msg // replies to q and to DS questions, see signer
	gaveWay  bool                           // its place is for other queries

	nonAuthoritative bool // the last reply is a resolver's

	// For the server's own questions: the zone's keys are looked at anew, and no negative trust anchor holds for a name.
	anew     bool
	positive string
}

// way is how a question was asked of a forwarder.
type way struct {
	took  string // the upstream that answered
	again bool   // it was asked once more
}

// way is how q was asked.
func (i *inquiry) way(q validate.Question) *way {
	w := i.ways[q]
	if w == nil {
		if w = new(way); i.ways == nil {
			i.ways = map[validate.Question]*way{}
		}
		i.ways[q] = w
	}
	return w
}

// detour is by which upstream q is to be asked now: by the same one as before, unless that was wrong twice about
// whatever was asked, see avoid.
func (i *inquiry) detour(q validate.Question) *advice.Detour {
	w := i.way(q)
	w.again = w.again || i.source(q).Again()
	return &advice.Detour{First: w.took, Last: i.avoided, Took: func(upstream string) { w.took = upstream }}
}

// avoid has others asked than the upstream that answered q, if it was asked once more and is still wrong.
func (i *inquiry) avoid(q validate.Question) {
	if w := i.way(q); w.again && w.took != "" && !slices.Contains(i.avoided, w.took) {
		i.avoided = append(i.avoided, w.took)
	}
}

// hurry ends what is asked for the client's sake when its patience is over, which began with its query. The end of the
// inquiry has to call done.
func (i *inquiry) hurry(began time.Time) (done context.CancelFunc) {
	i.ctx, done = context.WithDeadline(i.client, began.Add(i.patience()))
	return done
}

// ask has the plugins below answer; a reply that was cut is asked for again as over TCP. It is nil if they did not.
func (i *inquiry) ask(q validate.Question, m *dns.Msg) (reply *dns.Msg, rcode int, err error) {
	if !i.source(q).Again() {
		if reply, rcode, err = i.next(q, m, i.w); reply == nil || !reply.Truncated {
			return reply, rcode, err
		}
	}
	if again, c, e := i.stream(q, m); again != nil || reply == nil {
		return again, c, e
	}
	return reply, rcode, err
}

// stream is ask as over TCP.
func (i *inquiry) stream(q validate.Question, m *dns.Msg) (reply *dns.Msg, rcode int, err error) {
	return i.next(q, m, stream{i.w})
}

// next has the plugins below answer, for who they take w's client for.
func (i *inquiry) next(q validate.Question, m *dns.Msg, w dns.ResponseWriter) (reply *dns.Msg, rcode int, err error) {
	nw := &capture{Writer: nonwriter.New(w)}
	ctx := advice.WithDetour(advice.With(i.ctx, i.source(q)), i.detour(q))
	rcode, err = plugin.NextOrFailure(pluginName, i.Next, ctx, nw, m)
	i.nonAuthoritative = nw.nonAuthoritative
	return nw.Msg, rcode, err
}

// capture keeps a reply, and what only that of an adapter tells.
type capture struct {
	*nonwriter.Writer
	nonAuthoritative bool // it is a resolver's
}

// TakeReply implements plugin.ReplyTaker; it wants the message.
func (c *capture) TakeReply(reply *wire.Reply, _ *dns.Msg) (taken bool, err error) {
	c.nonAuthoritative = reply.NonAuthoritative()
	return false, nil
}

// source is who told what of a question.
func (i *inquiry) source(q validate.Question) *advice.Source {
	s := i.sources[q]
	if s == nil {
		s = &advice.Source{Purse: &i.purse}
		i.sources[q] = s
	}
	return s
}

// fetch asks for what is missing, nil if it cannot be had.
func (i *inquiry) fetch(q validate.Question) (*dns.Msg, *rrset.Message) {
	if i.ctx.Err() != nil {
		return nil, nil
	}
	if i.sources[q] == nil {
		i.sources[q] = &advice.Source{Proof: true, Purse: &i.purse}
	}
	if q.Type == dns.TypeDNSKEY {
		i.sources[q].Prefer(i.signer(q.Name))
	}
	defer func(client context.Context) { i.ctx = client }(i.ctx)
	i.ctx = metadata.ContextWithMetadata(i.ctx) // what plugins below say of it is not about the client's query
	reply := i.askTogether(q)
	if reply == nil {
		if i.way(q).took == "" { // a resolver has tried all servers; a forwarder may have other upstreams
			i.sources[q].InVain()
		}
		return nil, nil
	}
	m, err := parse(reply)
	if err != nil || m.Name != q.Name || m.Type != q.Type || reply.Truncated && !signed(m, q) { // what was cut denies nothing
		return nil, nil
	}
	i.keep(q, reply)
	if q.Type == dns.TypeDNSKEY && m.Rcode == dns.RcodeSuccess && i.live.Load().anchors[q.Name] != nil && !signed(m, q) {
		i.stripped(q.Name)
	}
	return reply, m
}

// signed reports whether a reply has what was asked for, and a signature.
func signed(m *rrset.Message, q validate.Question) bool {
	return slices.ContainsFunc(m.Section[rrset.Answer], func(s *rrset.Set) bool { return s.Name == q.Name && s.Type == q.Type && s.Sigs > 0 })
}

// stripped tells once of each upstream that it has no signature of the keys that a chain begins with: most likely it hands
// no signatures on.
func (i *inquiry) stripped(zone string) {
	upstream := metadata.ValueFunc(i.ctx, "forward/upstream")
	if upstream == nil {
		return // a resolver has asked the zone's own servers
	}
	addr := upstream()
	if _, told := i.strips.LoadOrStore(addr, true); !told {
		logger.Warningf("Upstream %s hands on no signatures of the keys of %s: nothing below that anchor can be validated", addr, rrset.Text(zone))
	}
}

// pass validates a reply, and asks for what is missing.
func (i *inquiry) pass(conf *validate.Config, reply *dns.Msg) (*validate.Verdict, *dns.Msg) {
	m, err := parse(reply)
	if err != nil {
		return &validate.Verdict{Rcode: reply.Rcode, Finding: validate.Finding{
			Status: validate.Bogus, Code: dns.ExtendedErrorCodeInvalidData, Told: true, Text: err.Error(),
		}}, reply
	}
	t := validate.New(conf, i.q, m, i.now())
	if !i.query.RecursionDesired {
		t.Alone()
	}
	for _, by := range i.source(i.q).All() {
		t.Told(by.Zone)
	}
	for _, name := range i.recut { // it is found out, whoever has signed
		t.Told(name)
	}
	return i.finish(t, i.step(t), reply)
}

// finish asks for what a Task of the reply says is missing, until there is a verdict.
func (i *inquiry) finish(t *validate.Task, missing []validate.Question, reply *dns.Msg) (*validate.Verdict, *dns.Msg) {
	if len(missing) > 0 {
		i.keep(i.q, reply)
	}
	targets := map[validate.Question]*dns.Msg{}
	for ; len(missing) > 0; missing = i.step(t) {
		for _, need := range missing {
			raw, m := i.fetch(need)
			if t.Give(need, m); need.Type == i.q.Type {
				targets[need] = raw
			}
		}
	}
	if i.gaveWay {
		f := validate.Finding{Status: validate.Bogus, Code: dns.ExtendedErrorCodeDNSSECIndeterminate, Told: true, Text: eventloop.ErrGaveWay.Error()}
		return &validate.Verdict{Finding: f, Over: true}, reply
	}
	i.spent += t.Verdict().Checks
	i.hashes += t.Verdict().Hashes
	i.looks += t.Verdict().Looks
	v := t.Verdict()
	if v.Status == validate.Bogus && reply.Truncated { // what is missing may have been cut
		v.Code, v.Told, v.Text = dns.ExtendedErrorCodeDNSSECIndeterminate, true, "the reply is not to be had as a whole"
	}
	return v, joined(reply, v.Chased, targets)
}

// step takes a step of a Task when it is the client's turn; none if the inquiry gives way to others.
func (i *inquiry) step(t *validate.Task) (missing []validate.Question) {
	i.gaveWay = !computed.do(wire.AddrOf(i.w.RemoteAddr()), i.q.Name, i.place, func() { missing = i.Validator.step(t) })
	return missing
}

// step takes a step of a Task.
func (v *Validator) step(t *validate.Task) []validate.Question {
	computing.Add(1)
	defer computing.Add(-1)
	began := time.Now()
	defer func() { v.counts.took(time.Since(began)) }()
	return t.Step()
}
