package validator

import (
	"context"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// One bad server of several need not keep a name from being resolved: what is bogus is asked for again of others, three
// times at most, be it the reply or what its chain is made of. What is still bogus then is remembered, so that it is not
// asked for with every query.

const (
	restarts     = 3
	mostRestarts = 12 // for one client's query
)

// judge validates a reply.
func (i *inquiry) judge(reply *dns.Msg) (*validate.Verdict, *dns.Msg) {
	return i.judgeOn(i.live.Load(), nil, nil, reply)
}

// judgeOn is judge by what is trusted, with a Task that was begun on the reply, and what is missing for it. What is bogus is
// asked for again, of other servers; a forwarder is asked over TCP.
func (i *inquiry) judgeOn(trusted *trust, begun *validate.Task, missing []validate.Question, reply *dns.Msg) (first *validate.Verdict, whole *dns.Msg) {
	conf, memory := trusted.conf, &skeptic{Memory: i.conf.Memory, ctx: i.ctx, purse: &i.purse}
	conf.Memory = memory
	if i.anew {
		memory.doubt(map[string]bool{i.q.Name: true}, i.now())
	}
	if i.positive != "" {
		conf.Negative = func(name string, now time.Time) bool { return name != i.positive && i.negative(name, now) }
	}
	if begun != nil {
		begun.Under(memory)
		first, whole = i.finish(begun, missing, reply)
	} else {
		first, whole = i.pass(&conf, reply)
	}
	verdict := first
	for n := 0; n < mostRestarts && verdict.Status == validate.Bogus && !verdict.Over && i.ctx.Err() == nil && !i.purse.Empty(); n++ {
		if conf.Budget.Checks = i.conf.Budget.Checks - i.spent; conf.Budget.Checks <= 0 {
			break
		}
		conf.Budget.Hashes, conf.Budget.Looks = i.conf.Budget.Hashes-i.hashes, i.conf.Budget.Looks-i.looks
		asked, hidden := i.rewalk(verdict)
		if len(asked) > 0 {
			n-- // it blames no server, and is done once for a name
		} else {
			asked, hidden = i.doubt(verdict, reply)
		}
		if len(asked) == 0 {
			break
		}
		i.believe(asked)
		memory.doubt(hidden, i.now())
		if asked[i.q] {
			again, _, _ := i.ask(i.q, i.query.Copy())
			if again != nil && (again.Rcode == dns.RcodeSuccess || again.Rcode == dns.RcodeNameError || again.Rcode == dns.RcodeYXDomain) {
				reply = again
			} else if len(asked) == 1 {
				break
			}
		}
		var other *dns.Msg
		if verdict, other = i.pass(&conf, reply); verdict.Status != validate.Bogus {
			first, whole = verdict, other
		}
	}
	switch {
	case first.Status == validate.Bogus && (i.gaveWay || i.client.Err() != nil): // who goes away decides nothing for others
	case first.Status == validate.Bogus:
		i.remember(i.q, first)
		memory.settle(i.now())
	default:
		i.teach(trusted, i.q, first, len(whole.Answer) == 0, i.sources[i.q].Told() > 0)
	}
	return first, whole
}

// rewalk tells what is to be asked for where the chain of a bogus reply was known before: zones may begin elsewhere now. The
// reply itself may be as good as the one that was asked for, so it is kept.
func (i *inquiry) rewalk(v *validate.Verdict) (asked map[validate.Question]bool, hidden map[string]bool) {
	asked, hidden = map[validate.Question]bool{}, map[string]bool{}
	for _, name := range v.Kept {
		ds := validate.Question{Name: name, Type: dns.TypeDS}
		if i.sources[ds] != nil || !i.memory.walk(name, clock.Now(), i.conf.BogusTTL) {
			continue
		}
		i.source(ds).Doubt("")
		i.recut = append(i.recut, name)
		asked[ds], hidden[name] = true, true
	}
	return asked, hidden
}

// doubt tells what of a bogus reply is to be asked for again: DS and DNSKEY RRsets at which the chain broke, or else the
// reply itself and the keys of its zone. Only what was asked for now is, as all else was tried before.
func (i *inquiry) doubt(v *validate.Verdict, reply *dns.Msg) (asked map[validate.Question]bool, hidden map[string]bool) {
	asked, hidden = map[validate.Question]bool{}, map[string]bool{}
	suspect := func(q validate.Question, name string) {
		if s := i.sources[q]; s != nil {
			s.Doubt(name)
			asked[q] = true
		}
	}
	wrong := func(q validate.Question, name string) bool {
		if i.restarts[q] >= restarts {
			return false
		}
		if i.restarts == nil {
			i.restarts = map[validate.Question]int{}
		}
		i.restarts[q]++
		i.avoid(q)
		suspect(q, name)
		return true
	}
	for _, q := range v.Broken {
		if i.sources[q] == nil || !wrong(q, "") { // for another query
			continue
		}
		hidden[q.Name] = true
		nobody := v.Code == dns.ExtendedErrorCodeDNSSECIndeterminate
		if nobody || (q.Type == dns.TypeDS || i.sources[q].Told() == 0) && !allSigned(reply) { // it may have been asked for as signatures were taken out
			suspect(i.q, v.Name)
		}
	}
	if len(v.Broken) > 0 || !wrong(i.q, v.Name) {
		return asked, hidden
	}
	missing := v.Code == dns.ExtendedErrorCodeRRSIGsMissing || v.Code == dns.ExtendedErrorCodeNSECMissing // no key makes up for that
	if v.Zone != "" && !missing {
		keys := validate.Question{Name: v.Zone, Type: dns.TypeDNSKEY}
		if i.sources[keys] == nil { // they were known already, and may have been replaced
			hidden[v.Zone] = true
			i.sources[keys] = &advice.Source{Proof: true, Purse: &i.purse}
			suspect(keys, "")
		}
	}
	return asked, hidden
}

// believe ends the doubt about all but what is to be asked for again: others have told it meanwhile, and the chain goes on
// with that. It may be asked for once more on the way, and costs no query then.
func (i *inquiry) believe(but map[validate.Question]bool) {
	for q, s := range i.sources {
		if !but[q] {
			s.Believe()
		}
	}
}

// allSigned reports whether a reply has signatures of all that it says.
func allSigned(reply *dns.Msg) bool {
	m, err := parse(reply)
	if err != nil {
		return false
	}
	for _, section := range [][]*rrset.Set{m.Section[rrset.Answer], m.Section[rrset.Authority]} {
		if slices.ContainsFunc(section, func(s *rrset.Set) bool { return s.Sigs == 0 }) {
			return false
		}
	}
	return true
}

// skeptic is a memory for one client's query. It has what was found out for its sake, whatever TTL that has, and is asked
// anew of some names, unless others have found out more about them since. What is bogus it hands on in the end, see
// settle.
type skeptic struct {
	validate.Memory
	ctx    context.Context
	purse  *advice.Purse
	own    map[string]*validate.Node
	broken map[string]*validate.Node
	hidden map[string]bool
	before map[string]*validate.Node // of names that were doubted: what was known of them then
}

// Node implements validate.Memory.
func (s *skeptic) Node(name string, now time.Time) *validate.Node {
	if n := s.own[name]; n != nil {
		return n
	}
	n := s.Memory.Node(name, now)
	if s.hidden[name] && !s.better(name, n) {
		return nil
	}
	return n
}

// better reports whether a Node of a name is not the one that was doubted, and tells more.
func (s *skeptic) better(name string, n *validate.Node) bool {
	return n != nil && n != s.before[name] && !n.Broken()
}

// KeepNode implements validate.Memory.
func (s *skeptic) KeepNode(name string, n *validate.Node) {
	if n.Broken() {
		// Where nobody has answered it was not found to be broken, and whoever is asked keeps that (RFC 9520 §3.2). Once the
		// client's time or purse is spent nobody has failed to answer, but the client to wait or to ask for less.
		if n.Code != dns.ExtendedErrorCodeDNSSECIndeterminate && s.ctx.Err() == nil && !s.purse.Empty() {
			if s.broken == nil {
				s.broken = map[string]*validate.Node{}
			}
			s.broken[name] = n
		}
		return
	}
	delete(s.broken, name)
	if s.own == nil {
		s.own = map[string]*validate.Node{}
	}
	s.own[name] = n
	s.Memory.KeepNode(name, n)
}

// settle hands on where the chain broke, as all were asked who could know better: names below are bogus without
// anybody being asked for it, until that is forgotten. Others may have had better luck meanwhile.
func (s *skeptic) settle(now time.Time) {
	for name, n := range s.broken {
		if !s.better(name, s.Memory.Node(name, now)) {
			s.Memory.KeepNode(name, n)
		}
	}
}

// doubt has the memory asked anew of names.
func (s *skeptic) doubt(names map[string]bool, now time.Time) {
	s.hidden = names
	for name := range names {
		delete(s.own, name)
		if s.before == nil {
			s.before = map[string]*validate.Node{}
		}
		s.before[name] = s.Memory.Node(name, now)
	}
}

// teach tells the resolver below what was found to be secure by who was trusted, if it was new: fresh says that a server
// has just told it.
func (v *Validator) teach(by *trust, q validate.Question, verdict *validate.Verdict, empty, fresh bool) {
	if v.learner == nil || verdict.Status != validate.Secure || !fresh && verdict.Checks == 0 {
		return
	}
	all := make([]advice.Secure, 0, len(verdict.Proof))
	for _, s := range verdict.Proof {
		if zone := validate.SignerOf(s.Set); zone != "" {
			all = append(all, advice.Secure{Set: s.Set, Zone: zone, TTL: s.Most})
		}
	}
	v.learner.Learn(by, q.Name, verdict.Rcode == dns.RcodeNameError && empty, all)
}

// failure is a question whose answer was bogus.
type failure struct {
	finding validate.Finding
	times   int
	until   time.Time
}

const (
	failureOctets  = 1 << 20
	failureSize    = 300
	longestFailure = 5 * time.Minute
)

// remember keeps that a question's answer is bogus: for bogus_ttl, and twice as long each time after that (RFC 9520 §3.2).
// Who finds that while it is kept asked before it was: it is the same time.
func (v *Validator) remember(q validate.Question, verdict *validate.Verdict) {
	now := clock.Now()
	f := failure{finding: verdict.Finding}
	old, ok := v.failures.get(q)
	switch {
	case ok && old.until.After(now):
		f.times = old.times
	case ok && old.until.Add(longestFailure).After(now):
		f.times = min(old.times+1, 10)
	}
	d := min(v.conf.BogusTTL<<f.times, longestFailure)
	if verdict.Code == dns.ExtendedErrorCodeDNSSECIndeterminate && !verdict.Over { // nobody answered
		d = min(d, shortFailure<<f.times)
	}
	f.until = now.Add(d)
	v.failures.put(q, f, failureSize)
}

// shortFailure is how long it is kept first that keys could not be had (RFC 9520 §3.2).
const shortFailure = 5 * time.Second

// known is what is kept of a question whose answer was bogus.
func (v *Validator) known(q validate.Question) (*validate.Verdict, bool) {
	if v.permissive {
		return nil, false
	}
	f, ok := v.failures.get(q)
	if !ok || !f.until.After(clock.Now()) {
		return nil, false
	}
	for name := q.Name; ; name = rrset.Parent(name) {
		if v.negative(name, v.now()) {
			return nil, false
		}
		if name == rrset.Root {
			break
		}
	}
	return &validate.Verdict{Finding: f.finding}, true
}
