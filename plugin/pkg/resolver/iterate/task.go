package iterate

import (
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Return codes, and extended errors (RFC 8914) that a Run tells.
const (
	rcodeSuccess  = 0
	rcodeYXDomain = 6
	rcodeServFail = wire.ServFail
	rcodeNXDomain = wire.NXDomain

	codeOther    = 0
	codeFiltered = 17
	codeNoReach  = 22
)

// stage is what a task does next.
type stage uint8

const (
	looking    stage = iota // in the stores
	descending              // to the closest zone cut, and to the question for its servers
	choosing                // a server
	waiting                 // for a server, or for other tasks
)

// task is one question of a Run.
type task struct {
	run     *Run
	q       Question
	name    string // where aliases have led
	depth   int
	refresh bool   // what is kept of q is not good enough
	above   string // if set: q is asked of a zone above this one, whose server it is
	stage   stage

	// A task goes round: it looks in the stores, descends to the closest cut, and
	// chooses a server; what that replies gives it another cut, another name, or ends
	// it. While it waits, either asked or needs is set, or both.
	done   bool
	looked bool // the stores were looked in just now, in vain

	chain   []*rrset.Set // aliases, in order
	steps   int          // of them
	cut     *store.Delegation
	min     minimiser
	here    visit    // what was tried at this cut for this question
	aside   *aside   // while the parent is asked once more
	renewed []string // the zones it was asked about
	asked   *ask     // under way, or nil
	under   ask      // what asked is
	needs   []*task
	wanted  []*task // who needs this one
	primed  bool    // the root was primed for it, or that failed
	found   []store.Host

	unshown  bool // a server did not want to see the client's network
	tailored bool // the reply at hand is for the client's network only

	rcode     int
	sets      []*rrset.Set
	authority []*rrset.Set
	code      uint16
	text      string
	told      bool
	repeated  bool // see Result
	due       bool // see Result
	by        any  // see Result
	server    netip.AddrPort
}

// ask is a question that is under way.
type ask struct {
	number int
	server *store.Server
	q      Question
	tcp    bool
	proof  bool // that is to show that it is the server who replies
	edns   bool
	cookie bool
	subnet string
	wait   time.Duration
}

// options reports whether the query had options in its OPT record.
func (a *ask) options() bool { return a.cookie || a.subnet != "" }

// zone is the zone whose servers the task asks, empty if none.
func (t *task) zone() string {
	if t.cut == nil {
		return ""
	}
	return t.cut.Zone
}

// advance takes a task on until it waits or is done, and then those that need it.
func (r *Run) advance(t *task) {
	for !t.done && t.stage != waiting {
		switch t.stage {
		case looking:
			t.look()
		case descending:
			t.descend()
		case choosing:
			t.choose()
		}
	}
	if !t.done {
		return
	}
	for _, w := range t.wanted {
		w.satisfied(t)
		if !w.done && w.stage == waiting && w.asked == nil {
			w.stage = choosing
			if w.cut == nil {
				w.stage = descending
			}
			r.advance(w)
		}
	}
	t.wanted = nil
}

// advanceFrom is advance for the tasks from the n-th on.
func (r *Run) advanceFrom(n int) {
	for _, o := range append([]*task(nil), r.tasks[n:]...) {
		r.advance(o)
	}
}

// finish ends a task with an answer.
func (t *task) finish(rcode int) {
	t.asideOver(nil)
	t.rcode, t.done, t.asked, t.needs = rcode, true, nil, nil
}

// fail ends a task without one.
func (t *task) fail(code uint16, text string) {
	t.code, t.text, t.told = code, text, true
	// Those who need it next need not seek it in vain again (TsuNAME).
	if r := t.run; t.depth > 0 && code != codeOther && t.above == "" {
		r.keep(t, t.q.Name)
	}
	t.finish(rcodeServFail)
}

// The graph of who needs whom has no circles: need refuses what would make one, so
// that every task ends, at the latest with the budget.

// need makes t wait for the answer to another question, and reports whether it does:
// not if that waits for t itself (TsuNAME: zones whose servers lie in each other), is
// too deep, or costs too much.
func (t *task) need(q Question, refresh bool, above string) bool {
	r := t.run
	for _, o := range r.tasks {
		if o.q == q && !o.done && o.refresh == refresh && o.above == above {
			if o.waitsFor(t, 0) {
				return false
			}
			t.needs, o.wanted = append(t.needs, o), append(o.wanted, t)
			return true
		}
	}
	if t.depth >= r.conf.Budget.Depth || t.within(q, above) {
		return false
	}
	o := &task{run: r, q: q, name: q.Name, depth: t.depth + 1, refresh: refresh, above: above, wanted: []*task{t}}
	t.needs = append(t.needs, o)
	r.tasks = append(r.tasks, o)
	return true
}

// within reports whether q is asked by t, or by one that needs it.
func (t *task) within(q Question, above string) bool {
	if t.q == q && t.above == above {
		return true
	}
	for _, w := range t.wanted {
		if w.within(q, above) {
			return true
		}
	}
	return false
}

// waitsFor reports whether t, or what it needs, waits for o.
func (t *task) waitsFor(o *task, depth int) bool {
	if t == o || depth > 32 {
		return true
	}
	for _, n := range t.needs {
		if !n.done && n.waitsFor(o, depth+1) {
			return true
		}
	}
	return false
}

// satisfied notes that a task that t needs is done.
func (t *task) satisfied(o *task) {
	for i, n := range t.needs {
		if n == o {
			t.needs = append(t.needs[:i:i], t.needs[i+1:]...)
			break
		}
	}
	if o.q.Type == wire.TypeNS {
		t.primed = true
		return
	}
	t.addresses(o)
}

// addresses keeps what o found for this task, also if its TTL is 0.
func (t *task) addresses(o *task) {
	if o.rcode != rcodeSuccess {
		return
	}
	h := store.Host{Name: o.q.Name}
	for _, s := range o.sets {
		if s.Type == o.q.Type {
			s.Each(func(rdata string) bool {
				h.Addrs = append(h.Addrs, rrset.Address(rdata))
				return len(h.Addrs) < perFamily
			})
		}
	}
	if len(h.Addrs) > 0 {
		t.found = append(t.found, h)
	}
}
