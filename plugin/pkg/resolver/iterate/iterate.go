// Package iterate resolves names from the root (RFC 1034 §5.3.3), as decisions only: a
// state machine that is told what happened and says what to do next. It owns no socket,
// clock or goroutine.
//
//	Begun, Replied, TimedOut, Failed ──▶ Run.Step ──▶ Send: ask a server; Finish: here is the Result
//	                                       │
//	lookup.go     what is kept answers it? aliases are followed (RFC 1034 §5.3.3 step 1)
//	synthesize.go does what was validated for other names answer it? (RFC 8198)
//	delegation.go the closest zone cut, and what a referral makes of it (step 2, 4b)
//	minimise.go   how much of the name a server gets to see (RFC 9156)
//	choose.go     which server is asked, and whose address is to be sought (step 2, 3)
//	renew.go      the parent is asked once more who the servers are, if none is of use
//	scrub.go      what of a reply is believed (RFC 2181 §5.4.1), and what kind it is
//	reply.go      what becomes of it (step 4)
//	subnet.go     what servers get to see of a client's network (RFC 7871)
//	localroot.go  the root zone may lie here (RFC 8806): then its servers are not asked
//	budget.go     what one client may cost
//
// A Run is one client's question with all inner ones, which are tasks of it: addresses
// of servers, and the priming of the root. It is for one goroutine at a time. What was
// learned goes to the Stores, which all Runs share. Start at Run.Step.
package iterate

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Minimise is how names are minimised.
type Minimise uint8

// The words of qname_minimisation.
const (
	Relaxed Minimise = iota // after an error the full name is asked
	Strict                  // errors are believed
	Off
)

// Cut is what an NXDOMAIN says of the names below (RFC 8020).
type Cut uint8

// The words of nxdomain_cut.
const (
	CutSecure Cut = iota // denies them if it is validated
	CutAlways
	CutOff
)

// Config is how names are resolved. It does not change.
type Config struct {
	Hints    *store.Delegation            // of the root
	Stubs    map[string]*store.Delegation // by zone
	Stores   *store.Stores
	Shared   *Shared
	Minimise Minimise
	Cut      Cut
	MixCase  bool
	Cookies  bool // servers are shown cookies
	IPv4     bool // servers are asked by such addresses
	IPv6     bool
	Prefer   int // 4, 6, or 0 for none
	Port     uint16
	Budget   Budget
	MinTTL   uint32
	MaxTTL   uint32
	MaxNeg   uint32

	Denied func(netip.Addr) bool // servers that are not asked
	// DeniedStub tells it of those of stubs, which are written down by hand; nil is none of them.
	DeniedStub func(netip.AddrPort) bool
	// Own tells it of those at which this server listens: it would only ask itself. Nil is none of them.
	Own     func(netip.AddrPort) bool
	Private func(string, netip.Addr) bool // addresses that are taken out of answers for a name; nil is none
	// Screened are zones: from answers to questions for names in them whoever asks takes private addresses out himself,
	// when they are validated.
	Screened []string
	Peer     func(netip.AddrPort) any // what a new store.Server gets as its Peer
	Proves   func(peer any) bool      // replies over UDP have a cookie; nil is always
	// Synthesize is a denial, or what a wildcard stands for, that follows from what was validated for other names (RFC
	// 8198), nil if none does. It may be nil.
	Synthesize func(name string, typ uint16, now store.Time) *store.Inferred
	// SOA is the SOA record of the zone that has signed a denial, if one is known that was validated, with what is left
	// of its TTL as one that denies; else nil. It may be nil.
	SOA func(denial *rrset.Set, now store.Time) *rrset.Set
	// Inside is what is said here of a name that nobody else is asked for (RFC 6303, 6761), with its TTL; nil if it is
	// none of these. No Run is for such a name, but aliases lead there. It may be nil.
	Inside func(name string, typ uint16) *store.Entry
	// LocalRoot answers in place of the root's servers (RFC 8806). It may be nil.
	LocalRoot LocalRoot
	// Ahead is told of what is going to be asked for, so that it can be fetched by another Run. It must not wait, and
	// may be nil.
	Ahead func(Question)
	// Subnets are the zones whose servers get to see in which network a client says it is (RFC 7871).
	Subnets []string
}

// LocalRoot is a copy of the root zone.
type LocalRoot interface {
	// Has reports whether there is one that may be used.
	Has() bool
	// Reply is what a server of the root would say; nil if the copy does not tell.
	Reply(name string, typ uint16) *rrset.Message
}

// Question is what is asked.
type Question struct {
	Name string // wire form, lower case
	Type uint16
}

// EventKind is what happened.
type EventKind uint8

// Kinds of events.
const (
	Begun    EventKind = iota
	Replied            // with Reply
	TimedOut           // no reply in time
	Failed             // the network said so, or the reply was malformed
	Waited             // the time of a Pause is over
)

// Event is what happened to a Run.
type Event struct {
	Kind    EventKind
	Ask     int           // the number that its Send had
	From    *store.Server // who was asked: another one than Send said if Joined
	Reply   *rrset.Message
	RTT     time.Duration
	TCP     bool
	TLS     bool   // with TCP
	Doubted int    // TimedOut: so many replies came that were not believed
	Folded  bool   // TimedOut: one of these had other letters than the question
	Forged  bool   // Failed: somebody guesses ids
	Joined  bool   // it was another Run's exchange: what it tells of the server is noted there
	Unsent  bool   // Failed: this machine could not send the question
	Code    uint16 // Failed: extended error
	Text    string
}

// ActionKind is what is to be done.
type ActionKind uint8

// Kinds of actions.
const (
	Send   ActionKind = iota // ask a server; the end is a Replied, TimedOut or Failed with the same number
	Finish                   // tell the client Result; nothing follows
)

// Action is what a Run wants done.
type Action struct {
	Kind     ActionKind
	Ask      int
	Server   *store.Server
	Zone     string // whose server it is asked as
	Question Question
	TCP      bool
	EDNS     bool
	Cookie   bool
	MixCase  bool
	Wait     time.Duration
	Subnet   string // the data of the client subnet option to be shown, empty for none
	Only     bool   // no other server will do, though another Run may be asking it the same
}

// Result is what came of a Run.
type Result struct {
	Rcode     int
	Answer    []*rrset.Set // aliases in order, then the RRset; TTLs are what is left
	Authority []*rrset.Set // of a denial: SOA, NSEC, NSEC3
	Code      uint16       // extended error, with Told
	Text      string
	Told      bool
	Repeated  bool   // it failed for an earlier question, and that was kept (RFC 9520)
	Zone      string // whose server answered last
	Server    netip.AddrPort
	Queries   int
	Octets    int  // of replies
	Wholes    int  // so often a server was asked for a full name, as less of it had no good answer (RFC 9156 §2.3)
	Due       bool // it was kept, and will not be for long: in the last tenth of its TTL, of keys in the second half
	By        any  // who found all that it was made of to be secure; nil if others had a part in it
	Scope     byte // so many bits of the client's network decided the answer (RFC 7871 §7.2.1)
	Missed    Missed
	Tellers   []advice.Teller // who told which link, if there are aliases; else it is Server alone
}

// Missed are the queries of a Run without a reply that helps: none in time, none that could be read, an error, or what
// a server without the zone says.
type Missed struct {
	N        int32         // of them
	TCP, TLS bool          // how the last one was asked
	Server   *store.Server // who was asked last, nil if N is 0
}

// miss notes one that s was asked.
func (r *Run) miss(s *store.Server, ev Event) {
	r.result.Missed = Missed{N: r.result.Missed.N + 1, TCP: ev.TCP, TLS: ev.TLS, Server: s}
}

// Run is one client's question.
type Run struct {
	conf    *Config
	now     store.Time
	root    *task
	tasks   []*task
	asks    int
	source  *advice.Source // may be nil
	subnet  string         // of the client, empty if it told none
	actions []Action
	spent   spending
	wholes  int // see Result
	result  Result
	over    bool
	unsent  bool // the question that ended last could not be sent
	ahead   bool // see Ahead
	aheads  int  // what others fetch ahead for this one

	// Most Runs have one task, and want one thing done at a time: what these need lies here.
	first  task
	room   [1]*task
	wanted [1]Action
}

// freeRuns are zero.
var freeRuns = sync.Pool{New: func() any { return new(Run) }}

// New is a Run for a question. refresh has it fetched though it is kept.
func New(conf *Config, q Question, refresh bool) *Run {
	r := freeRuns.Get().(*Run)
	r.conf, r.first.q, r.first.name, r.first.refresh = conf, q, q.Name, refresh
	r.root, r.tasks, r.actions = &r.first, r.room[:0], r.wanted[:0]
	return r
}

// Free lets another question have the Run, which nobody may use any more; a copy of its Result stays good.
func (r *Run) Free() {
	*r = Run{}
	freeRuns.Put(r)
}

// Looked spares a Run to look for its question in the stores: its caller has just done so, in vain (Kept.InVain). It
// belongs before the first Step.
func (r *Run) Looked() { r.first.looked = true }

// Refresh has a Run fetch its question though it is kept. It belongs before the first Step.
func (r *Run) Refresh() { r.first.refresh = true }

// Trace has a Run tell who answered its question, and spare whom the Source doubts. It belongs before the first Step.
func (r *Run) Trace(s *advice.Source) { r.source = s }

// Step takes a Run on after an event. The actions are good until the next Step. The
// time is the stores'.
func (r *Run) Step(ev Event, now store.Time) []Action {
	r.actions, r.now = r.actions[:0], now
	if r.over {
		return nil
	}
	if ev.Kind == Begun {
		r.root.run = r
		r.tasks = append(r.tasks, r.root)
		r.advance(r.root)
	} else if t := r.asking(ev.Ask); t != nil {
		r.ended(t, ev)
		r.advance(t)
	}
	if r.root.done {
		r.over = true
		r.finish()
	}
	return r.actions
}

// Result is what came of a Run that has finished.
func (r *Run) Result() *Result { return &r.result }

// Late is the Result for a client whose time is over; the Run may go on.
func (r *Run) Late(now store.Time) *Result {
	text := "no reply in time"
	if t := r.root; t.cut != nil {
		text = fmt.Sprintf("%s: no reply in time, %d queries", rrset.Text(t.cut.Zone), r.spent.queries)
	}
	if !r.ahead {
		r.conf.Stores.Failures.Note(r.root.q.Name, r.root.q.Type, codeNoReach, text, now)
	}
	for _, t := range r.tasks {
		if t.q == rootNS && !t.done {
			r.conf.Shared.failed(now, "no reply in time")
		}
	}
	return &Result{Rcode: rcodeServFail, Code: codeNoReach, Text: text, Told: true, Queries: r.spent.queries, Octets: r.spent.octets,
		Zone: r.root.zone(), Missed: r.result.Missed}
}

// Abandon ends a Run without a Result.
func (r *Run) Abandon() { r.over = true }

// asking is the task that asked with a number, nil if it is done.
func (r *Run) asking(n int) *task {
	for _, t := range r.tasks {
		if t.asked != nil && t.asked.number == n {
			return t
		}
	}
	return nil
}

func (r *Run) do(a Action) { r.actions = append(r.actions, a) }

// finish makes the Result of what the first task has.
func (r *Run) finish() {
	t := r.root
	r.result = Result{
		Rcode: t.rcode, Answer: append(once(t.chain), t.sets...), Authority: t.authority,
		Code: t.code, Text: t.text, Told: t.told, Repeated: t.repeated, Queries: r.spent.queries, Octets: r.spent.octets, Wholes: r.wholes, Due: t.due, Zone: t.zone(), Server: t.server,
		Scope: r.result.Scope, Missed: r.result.Missed, Tellers: r.result.Tellers,
	}
	if len(t.chain) == 0 && t.code == codeSynthesized { // what was filtered is less than what was secure
		r.result.By = t.by
	}
	if t.rcode == rcodeServFail {
		r.result.Answer, r.result.Authority = nil, nil
		if r.spent.queries > 0 && !r.source.Again() && !r.ahead { // who doubts has an answer
			r.failed()
		} else if _, kept := r.conf.Stores.Failures.Get(t.q.Name, t.q.Type, r.now); kept && r.spent.queries == 0 {
			// and so are the aliases that led here
			r.result.Repeated = true
		}
	} else if r.spent.queries > 0 {
		r.conf.Stores.Failures.Forget(t.q.Name, t.q.Type)
		if t.name != t.q.Name {
			r.conf.Stores.Failures.Forget(t.name, t.q.Type)
		}
	}
	r.do(Action{Kind: Finish})
}

// once is a chain of aliases with each DNAME once, though it may lead on more often: no set has a record twice (RFC
// 2181 §5). The chain is used up.
func once(chain []*rrset.Set) []*rrset.Set {
	kept := chain[:0]
	for _, s := range chain {
		if s.Type != wire.TypeDNAME || find(kept, s.Name, s.Type) == nil {
			kept = append(kept, s)
		}
	}
	return kept
}

// failed keeps that the question failed (RFC 9520), and the name to which its aliases have led, so that it is not tried
// again by way of others: unless that was kept already, which does not prolong it, or the chain itself is to blame.
func (r *Run) failed() {
	t := r.root
	r.keep(t, t.q.Name)
	if t.name != t.q.Name && t.code != codeOther && !t.repeated {
		r.keep(t, t.name)
	}
}

// keep keeps that t failed, as the failure of a name: for a moment if none of the servers that were asked at last has
// got the question.
func (r *Run) keep(t *task, name string) {
	note := r.conf.Stores.Failures.Note
	if r.unsent && !t.here.sent {
		note = r.conf.Stores.Failures.Unsent
	}
	note(name, t.q.Type, t.code, t.text, r.now)
}

// roll is a random number below n.
func roll(n int) int { return rand.IntN(n) }
