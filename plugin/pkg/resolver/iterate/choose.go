package iterate

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file chooses the server that is asked next (RFC 1034 §5.3.3 steps 2 and 3, RFC
// 9520 §3.1), and what is done when none is left. servers.go has who they are, and
// seek.go names of servers without addresses.

const (
	band       = 400 * time.Millisecond // servers that are slower than the fastest by less are as good
	anyOneIn   = 20                     // so often any server is asked, to learn of its speed
	preference = 50 * time.Millisecond  // what the family that is not preferred has to be faster by
)

// visit is what was tried for one question at one cut.
type visit struct {
	q        Question
	zone     string // of the cut
	last     bool   // it is the full question
	count    int    // queries
	timeouts int
	quiet    int // of these, those over UDP since a reply, also for what of the name was asked for before
	probes   int // of dead servers, also for what of the name was asked for before
	lame     int // queries to lame servers
	tries    []try
	room     [2]try // of tries
	sought   []string
	resought []string // see reseek
	final    bool     // the query under way is the last that can be sent over UDP
	tcp      bool     // a server was asked over TCP as none had replied over UDP
	sent     bool     // this machine could send one of the queries
	heard    bool     // a server has replied
	parents  bool     // addresses that parents tell of servers of other zones are tried
	child    bool     // the zone's own names of servers are tried
	soft     *reading
	softFrom *store.Server
	code     uint16 // of what went wrong last
	text     string
}

// try is how often a server was asked.
type try struct {
	addr   netip.AddrPort
	n      int
	silent int  // of these, those over UDP to which no reply came
	bad    bool // it said that it does not know
}

func (v *visit) try(a netip.AddrPort) *try {
	for i := range v.tries {
		if v.tries[i].addr == a {
			return &v.tries[i]
		}
	}
	if v.tries == nil {
		v.tries = v.room[:0]
	}
	v.tries = append(v.tries, try{addr: a})
	return &v.tries[len(v.tries)-1]
}

// The order is: those that were not asked yet, fast ones first; those whose addresses
// are unknown so far, for who has two names of servers should not depend on one; those
// that were silent, once more and a second time; those that the parent tells by now; a
// silent one over TCP, and sooner where much was lost (overtcp.go); those that count as
// dead; those that are lame, as they may be so for some names or types only. Who said that
// it does not know is not asked again for this question.

// choose asks the next server, or seeks addresses of one, or gives up.
func (t *task) choose() {
	if t.local() {
		return
	}
	if why, ok := t.run.affords(); !ok {
		t.fail(codeOther, why)
		return
	}
	if t.here.count >= perQuestion {
		if !t.renew() {
			t.exhausted()
		}
		return
	}
	all := t.servers()
	if t.deaf(all) {
		if s := t.overTCP(all, 0); s != nil {
			t.send(s, true)
			return
		}
	}
	if s := t.pick(all, 0); s != nil {
		t.send(s, false)
		return
	}
	if len(t.needs) > 0 || t.seek() {
		if t.stage == choosing {
			t.stage = waiting
		}
		return
	}
	if t.aside != nil {
		if t.renew() || t.reseek() {
			return
		}
		if s := t.lame(all); s != nil {
			t.send(s, false)
		} else {
			t.back()
		}
		return
	}
	for n := 1; n < perServer; n++ {
		if s := t.pick(all, n); s != nil {
			t.here.final = n == perServer-1 && !t.live(all, s)
			t.send(s, false)
			return
		}
	}
	if t.renew() || t.reseek() {
		return
	}
	if s, tcp := t.resort(all); s != nil {
		t.send(s, tcp)
		return
	}
	t.exhausted()
}

// Uniformly among the fast ones, so that a forger cannot know who is asked (RFC 5452
// §9.1), and now and then any of them, or a server that was slow once would stay so.

// pick is one of those that were asked n times, nil if there is none: usually one of
// the fast ones.
func (t *task) pick(all []*store.Server, n int) *store.Server {
	var room [16]candidate
	may := room[:0]
	zone, now := t.cut.Zone, t.run.now
	best := time.Duration(1<<62 - 1)
	for _, s := range all {
		y := t.here.try(s.Addr)
		if y.bad || y.n != n || s.Dead(now) && (n == 0 || !s.Unheard()) || t.spared(s) || s.IsDead() && (t.here.probes >= deadProbes || t.here.count > 0 && t.live(all, s)) {
			continue
		}
		if lame, soft := s.Lame(zone, now); lame && (!soft || n == 0 && len(all) > 1 || t.here.lame >= lameProbes) {
			if soft && n == 0 {
				y.n++ // after all others
			}
			continue
		}
		c := candidate{s, t.speed(s)}
		may = append(may, c)
		best = min(best, c.speed)
	}
	if len(may) == 0 {
		return nil
	}
	if s := t.preferred(may); s != nil && n == 0 {
		return s
	}
	if roll(anyOneIn) > 0 {
		may = slices.DeleteFunc(may, func(c candidate) bool { return c.speed > best+band })
	}
	return may[roll(len(may))].server
}

// candidate is a server with its speed when it was looked at: other Runs change what is known of it meanwhile.
type candidate struct {
	server *store.Server
	speed  time.Duration
}

// Who has nobody else to ask gains nothing by giving up soon: a server that is near may be busy for longer than its
// round trip time tells, and one that never replied may be far (store.Server.Patience).

// live reports whether another server than s may be asked, perhaps once more, that does not count as dead.
func (t *task) live(all []*store.Server, s *store.Server) bool {
	for _, o := range all {
		if o == s {
			continue
		}
		lame, soft := o.Lame(t.cut.Zone, t.run.now)
		if y := t.here.try(o.Addr); !y.bad && y.n < perServer && (!lame || soft) && !o.IsDead() && !t.spared(o) {
			return true
		}
	}
	return false
}

// speed is a server's round trip time with what its family costs.
func (t *task) speed(s *store.Server) time.Duration {
	d := s.RTT()
	if p := t.run.conf.Prefer; p == 4 && s.Addr.Addr().Is6() || p == 6 && s.Addr.Addr().Is4() {
		d += preference + band
	}
	return d
}

// probe is a server that counts as dead, when there is no other.
func (t *task) probe(all []*store.Server) *store.Server {
	if t.here.probes >= deadProbes {
		return nil
	}
	return t.forlorn(all, true, false)
}

// lame is a server that said before that it does not serve the zone, when there is no other.
func (t *task) lame(all []*store.Server) *store.Server {
	if t.here.lame >= lameProbes {
		return nil
	}
	return t.forlorn(all, false, true)
}

// forlorn is any of those that are dead or lame, if it was not asked for this question yet.
func (t *task) forlorn(all []*store.Server, dead, lame bool) *store.Server {
	if len(all) == 0 {
		return nil
	}
	first := roll(len(all))
	for i := range all {
		s := all[(first+i)%len(all)]
		if y := t.here.try(s.Addr); y.n == 0 && !y.bad && s.Dead(t.run.now) == dead && !t.spared(s) {
			if is, _ := s.Lame(t.cut.Zone, t.run.now); is == lame {
				return s
			}
		}
	}
	return nil
}

// send asks a server.
func (t *task) send(s *store.Server, tcp bool) {
	r := t.run
	if why, ok := r.affords(); !ok {
		t.fail(codeOther, why)
		return
	}
	mix := r.conf.MixCase && s.MixCase(r.now)
	proof := false
	tcp = tcp || s.Streams(r.now)
	if !tcp && r.conf.MixCase && !mix && r.conf.Proves != nil && !r.conf.Proves(s.Peer) && !s.NoTCP(r.now) {
		tcp, proof = true, true // nothing but port and id would tell a reply from a forged one
	}
	if s.IsDead() {
		t.here.probes++
	}
	lame, _ := s.Lame(t.cut.Zone, r.now)
	if lame {
		t.here.lame++
	}
	t.here.count++
	t.here.try(s.Addr).n++
	r.spent.queries++
	r.asks++
	s.Asked(r.now)
	doubts := t == r.root && r.source.Again()
	t.under = ask{number: r.asks, server: s, q: t.here.q, tcp: tcp, proof: proof, edns: s.EDNS(r.now) || doubts && s.AgainEDNS(r.now)}
	t.asked = &t.under
	if t.asked.edns {
		t.asked.subnet = t.shown()
		t.asked.cookie = r.conf.Cookies && s.Options(r.now) && !lame // that may be what it refuses
	}
	t.stage, t.server = waiting, s.Addr
	wait := s.Wait()
	switch {
	case t.here.final:
		wait = max(wait, s.Patience())
	case s.IsDead() && t.live(t.servers(), s):
		wait = s.ProbeWait()
	}
	if tcp {
		wait = max(wait, tcpWait)
	}
	t.under.wait = wait
	r.do(Action{
		Kind: Send, Ask: r.asks, Server: s, Zone: t.cut.Zone, Question: t.here.q, TCP: tcp, EDNS: t.asked.edns, Cookie: t.asked.cookie,
		MixCase: mix && !tcp, Wait: wait, Subnet: t.asked.subnet, Only: doubts,
	})
}

// What is left then, in this order: the full name, if less was asked; what a server said
// that is no authority; addresses that parents tell of servers in other zones; names of
// servers that only the zone itself tells. After that the question has failed.

// exhausted is what is done when no server is left that could be asked.
func (t *task) exhausted() {
	v, r := &t.here, t.run
	switch {
	case t.aside != nil:
		t.back()
	case !v.last && r.conf.Minimise == Relaxed && (v.soft == nil || v.soft.kind != referral):
		t.whole()
	case v.soft != nil:
		t.take(v.soft, v.softFrom)
	case !v.parents && t.cut.Zone != rrset.Root && !t.cut.Fixed:
		v.parents = true // and choose again
	case !v.child && t.ownHosts():
		t.here.child, t.here.count = true, 0
	default:
		if v.code == 0 && v.text == "" {
			v.code = codeNoReach
		}
		if v.text == "" {
			v.text = fmt.Sprintf("%s: %d servers tried", rrset.Text(t.cut.Zone), len(v.tries))
		}
		if t.q == rootNS {
			r.conf.Shared.failed(r.now, v.text)
		}
		t.fail(v.code, v.text)
	}
}

// whole asks the servers of the cut for the full name: they do not get along with less
// (RFC 9156 §2.3).
func (t *task) whole() {
	t.min.full, t.stage = true, descending
	t.run.wholes++
}

// ownHosts makes names of servers that only the zone itself has told the cut's. It
// reports whether there are any.
func (t *task) ownHosts() bool {
	e := t.run.conf.Stores.RRsets.Get(t.cut.Zone, wire.TypeNS, t.run.now)
	if e == nil || e.Kind != store.Positive || t.cut.Fixed {
		return false
	}
	own := *t.cut
	own.Child = nil
	e.Set.Each(func(rdata string) bool {
		name, known := rrset.Target(rdata), false
		for _, h := range t.cut.Hosts {
			known = known || h.Name == name
		}
		if !known {
			own.Child = append(own.Child, store.Host{Name: name})
		}
		return len(own.Child) < maxHosts
	})
	t.cut = &own
	return len(own.Child) > 0
}
