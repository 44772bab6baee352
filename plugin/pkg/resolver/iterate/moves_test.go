package iterate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// realm is a tree of zones that changes by chance: zones move, come, go, and are merged. Whoever serves a zone serves it
// as it is now; all others refuse, and addresses that are nobody's any more are silent or refuse.
type realm struct {
	*rand.Rand
	now   func() store.Time
	zones map[string]*domain
	next  int
	gone  map[string]store.Time // zones that were taken away: until when what was said of them may hold
}

// domain is a zone.
type domain struct {
	name  string
	ttl   uint32                  // of its NS set
	hosts []string                // of that
	addrs map[string][]netip.Addr // of names in the zone
}

// names are those of all zones, sorted.
func (x *realm) names() []string { return slices.Sorted(maps.Keys(x.zones)) }

func (x *realm) any() *domain {
	all := x.names()
	return x.zones[all[x.IntN(len(all))]]
}

// closest is the zone that a name lies in.
func (x *realm) closest(name string) *domain {
	for x.zones[name] == nil {
		name = rrset.Text(rrset.Parent(rrset.MustName(name)))
	}
	return x.zones[name]
}

func (x *realm) above(z *domain) *domain {
	return x.closest(rrset.Text(rrset.Parent(rrset.MustName(z.name))))
}

// addr is an address that nobody has had.
func (x *realm) addr() []netip.Addr {
	x.next++
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(x.next >> 8), byte(x.next)})}
}

// staff gives a zone servers: with names in the zone, or in its parent, or those of the parent.
func (x *realm) staff(z *domain) {
	z.hosts = nil
	for range 1 + x.IntN(3) {
		in, p := z, x.above(z)
		switch k := x.IntN(10); {
		case k < 2:
			in = p
		case k < 4 && p.name != ".":
			z.hosts = append(z.hosts, p.hosts[x.IntN(len(p.hosts))])
			continue
		}
		h := strings.ReplaceAll(fmt.Sprintf("ns%d.%s", x.IntN(1000), in.name), "..", ".")
		in.addrs[h] = x.addr()
		z.hosts = append(z.hosts, h)
	}
	slices.Sort(z.hosts)
	z.hosts = slices.Compact(z.hosts)
}

func (x *realm) add(name string) {
	if x.zones[name] != nil || strings.Count(name, ".") > 6 {
		return
	}
	z := &domain{name: name, ttl: 60 + uint32(len(name))*130%2000, addrs: map[string][]netip.Addr{}}
	x.zones[name] = z
	delete(x.gone, name)
	x.staff(z)
}

// remove ends a zone. What is kept of it may live as long as the parent has said it would.
func (x *realm) remove(z *domain, ttl uint32) {
	delete(x.zones, z.name)
	x.gone[z.name] = x.now() + store.Time(max(ttl, z.ttl))*store.Second
}

// change changes something.
func (x *realm) change() {
	z := x.any()
	if z.name == "." || len(x.zones) < 8 {
		x.add(fmt.Sprintf("z%d.%s", x.IntN(4), strings.TrimPrefix(z.name, ".")))
		return
	}
	switch x.IntN(7) {
	case 0:
		x.staff(z)
	case 1, 2: // its servers have other addresses
		for _, h := range z.hosts {
			x.closest(h).addrs[h] = x.addr()
		}
	case 3: // with all below
		for _, n := range x.names() {
			if dns.IsSubDomain(z.name, n) {
				x.remove(x.zones[n], z.ttl)
			}
		}
	case 4:
		x.add(fmt.Sprintf("z%d.%s", x.IntN(4), z.name))
	case 5:
		x.add(fmt.Sprintf("z%d.z%d.%s", x.IntN(4), x.IntN(4), z.name))
	case 6: // into its parent; what is below stays
		maps.Copy(x.above(z).addrs, z.addrs)
		x.remove(z, z.ttl)
	}
}

// serves reports whether a zone is served at an address.
func (x *realm) serves(at netip.Addr, z *domain) bool {
	return slices.ContainsFunc(z.hosts, func(h string) bool { return slices.Contains(x.closest(h).addrs[h], at) })
}

// reply is what is said at an address.
func (x *realm) reply(at netip.Addr, q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	var z, cut *domain
	for _, n := range x.names() {
		o := x.zones[n]
		if dns.IsSubDomain(n, name) && (typ != dns.TypeDS || n != name) && (z == nil || len(n) > len(z.name)) && x.serves(at, o) {
			z = o
		}
	}
	if z == nil {
		if at.As4()[3]%2 == 0 && !slices.ContainsFunc(x.names(), func(n string) bool { return x.serves(at, x.zones[n]) }) {
			return nil
		}
		m.Rcode = dns.RcodeRefused
		return m
	}
	for _, n := range x.names() {
		if len(n) > len(z.name) && dns.IsSubDomain(z.name, n) && dns.IsSubDomain(n, name) && (typ != dns.TypeDS || n != name) &&
			(cut == nil || len(n) < len(cut.name)) {
			cut = x.zones[n]
		}
	}
	hdr := dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: 1}
	m.Authoritative = cut == nil
	switch {
	case cut != nil:
		for _, h := range cut.hosts {
			m.Ns = append(m.Ns, &dns.NS{Hdr: dns.RR_Header{Name: cut.name, Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: cut.ttl}, Ns: h})
			for _, a := range x.closest(h).addrs[h] {
				m.Extra = append(m.Extra, &dns.A{Hdr: dns.RR_Header{Name: h, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: cut.ttl}, A: a.AsSlice()})
			}
		}
	case typ == dns.TypeA && len(z.addrs[name]) > 0:
		hdr.Ttl = 300
		m.Answer = append(m.Answer, &dns.A{Hdr: hdr, A: z.addrs[name][0].AsSlice()})
	case typ == dns.TypeA && name[0] == 'w':
		m.Answer = append(m.Answer, &dns.A{Hdr: hdr, A: []byte{192, 0, 2, 1}})
	default:
		m.Ns = append(m.Ns, &dns.SOA{Hdr: dns.RR_Header{Name: z.name, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 1}, Ns: "x.", Mbox: "x.", Minttl: 1})
	}
	return m
}

// ask takes a Run through the world, and returns its rcode and the zones whose parents it asked once more.
func (w *world) ask(q Question, refresh bool) (rcode int, renewed []string) {
	w.t.Helper()
	r := New(w.conf, q, refresh)
	queue := append([]Action(nil), r.Step(Event{Kind: Begun}, w.now)...)
	for len(queue) > 0 {
		for _, t := range r.tasks {
			for a := t.aside; a != nil; a = a.below {
				renewed = append(renewed, a.cut.Zone)
			}
		}
		a := queue[0]
		queue = queue[1:]
		if a.Kind == Finish {
			if n := r.Result().Queries; n > w.conf.Budget.Queries {
				w.t.Errorf("%v: %d queries", q, n)
			}
			slices.Sort(renewed)
			return r.Result().Rcode, slices.Compact(renewed)
		}
		queue = append(queue, r.Step(w.exchange(a), w.now)...)
	}
	w.t.Fatalf("%v: the Run neither asks nor ends", q)
	return
}

// However zones change, names are found that a resolver finds that knows nothing yet: at the latest when that for which
// a parent is left alone is over a few times. Zones that are gone are forgotten by the time that the parent has named.
func TestMoves(t *testing.T) {
	found, up := 0, 0
	for seed := range uint64(50) {
		w := newWorld(t)
		x := &realm{Rand: rand.New(rand.NewPCG(seed, 1)), now: func() store.Time { return w.now }, gone: map[string]store.Time{}}
		root := &domain{name: ".", ttl: 86400, hosts: []string{"a.root."}, addrs: map[string][]netip.Addr{"a.root.": {addr("10.0.0.1")}}}
		x.zones = map[string]*domain{".": root}
		for range 30 {
			x.change()
		}
		w.conf.Minimise = Minimise(x.IntN(3))
		w.conf.Shared.failed(w.now, "not now") // no priming
		listen := func(w *world) {
			w.wild = func(a Action) *Event {
				at := a.Server.Addr.Addr()
				w.servers[at] = func(q *dns.Msg, _ bool) *dns.Msg { return x.reply(at, q) }
				return nil
			}
		}
		listen(w)
		last := map[string]store.Time{}
		for step := range 60 {
			for range x.IntN(4) {
				x.change()
			}
			w.now += store.Time(x.IntN(20)) * store.Second
			name := fmt.Sprintf("%c%d.%s", "wwx"[x.IntN(3)], step, strings.Repeat("n.", x.IntN(3)))
			if in := x.any().name; in != "." {
				name += in
			}
			q := Question{rrset.MustName(name), []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeDS, dns.TypeDNSKEY}[x.IntN(4)]}

			fresh := newWorld(t)
			conf := *w.conf
			conf.Stores, conf.Shared, fresh.conf, fresh.now = store.New(16<<20, 10000), &Shared{}, &conf, w.now
			conf.Shared.failed(w.now, "not now")
			listen(fresh)
			want, _ := fresh.ask(q, false)

			got := 0
			for range 4 { // it may be left alone still, or a name of a server have failed just now
				begun := w.now
				var renewed []string
				got, renewed = w.ask(q, x.IntN(4) == 0)
				for _, zone := range renewed {
					if at, ok := last[zone]; ok && w.now-at < renewAfter {
						t.Errorf("seed %d, %s: the parent of %s was asked again after %d s", seed, name, rrset.Text(zone), (w.now-at)/store.Second)
					}
					last[zone] = begun
					up++
				}
				for zone, until := range x.gone {
					if w.now > until+store.Second && w.conf.Stores.Delegations.Get(rrset.MustName(zone), w.now) != nil {
						t.Errorf("seed %d, %s: %s is gone for long", seed, name, zone)
					}
				}
				if got != rcodeServFail || want == rcodeServFail {
					break
				}
				w.now += 11 * store.Second
			}
			if want == rcodeSuccess {
				found++
				if got != want {
					t.Errorf("seed %d: %s %s is %s", seed, name, dns.TypeToString[q.Type], dns.RcodeToString[got])
				}
			}
		}
	}
	if found < 1000 || up < 200 {
		t.Errorf("%d names were found, parents were asked %d times", found, up)
	}
}
