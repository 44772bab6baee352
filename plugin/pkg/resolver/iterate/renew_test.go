package iterate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// refuse refuses what it is asked.
func refuse(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }

// moving is a world whose example.org has been asked for, and is about to move to 10.0.2.3.
func moving(t *testing.T) *world {
	w := small(t)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.now += 20 * store.Second
	w.serve("10.0.2.3", strings.NewReplacer("10.0.2.1", "10.0.2.3", "192.0.2.1", "192.0.2.7").Replace(exampleZone)+
		"b.c.d.example.org. 3600 IN A 192.0.2.8\nmail.example.org. 60 IN A 192.0.2.9\n")
	w.asked = nil
	return w
}

var exampleOrg = rrset.MustName("example.org.")

// What the parent says of it then.
const (
	sameNames = `
org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300
example.org. 3600 IN NS ns1.example.org.
ns1.example.org. 3600 IN A 10.0.2.3
`
	otherNames = `
org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300
example.org. 3600 IN NS new.example.org.
new.example.org. 3600 IN A 10.0.2.3
`
)

// Where no server that is known is of use any more, the parent is asked who they are by now, and names are found at
// once, however long its NS set was to last. That does not make the delegation live longer.
func TestMoved(t *testing.T) {
	names := map[string]string{
		"mail.example.org.": "NOERROR; mail.example.org. A 192.0.2.9", "b.c.d.example.org.": "NOERROR; b.c.d.example.org. A 192.0.2.8",
	}
	for _, refuses := range []bool{false, true} {
		for _, parent := range []string{sameNames, otherNames} {
			for name, want := range names {
				w := moving(t)
				ends := w.conf.Stores.Delegations.Get(exampleOrg, w.now).Expires
				w.serve("10.0.1.1", parent)
				for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
					w.servers[addr(at)] = nil
					if refuses {
						w.servers[addr(at)] = refuse
					}
				}
				w.want(name, "A", want)
				n := len(w.asked)
				w.want("www1.example.org.", "A", "NXDOMAIN")
				if n = len(w.asked) - n; n != 1 {
					t.Errorf("%d queries for the next name", n)
				}
				if d := w.conf.Stores.Delegations.Get(exampleOrg, w.now); d == nil || d.Expires != ends {
					t.Errorf("the delegation is %+v; it was to end at %d", d, ends)
				}
			}
		}
	}
}

// A parent that tells the same again is not asked for ten seconds, by whatever names, and neither is one that refuses to.
// One that is silent is asked again soon: it may have fallen silent together with the zone's servers, and be there again.
func TestMovedNowhere(t *testing.T) {
	for what, c := range map[string]struct {
		parent      func(*dns.Msg, bool) *dns.Msg // nil is silent
		least, most int                           // queries
	}{
		"the same": {small(t).servers[addr("10.0.1.1")], 2, 2},
		"refuses":  {refuse, 2, 4}, // with less of the name than its servers may need, and once more when it counts as lame
		"silent":   {nil, 6, 25},
	} {
		w := moving(t)
		w.servers[addr("10.0.1.1")] = c.parent
		w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = refuse, refuse
		began := w.now
		for i := range 20 {
			w.want(fmt.Sprintf("x%d.example.org.", i), "A", "SERVFAIL; EDE 22")
			w.now = max(w.now, began+store.Time(i+1)*store.Second)
		}
		parent := 0
		for _, a := range w.asked {
			if a.at == addr("10.0.1.1") {
				parent++
			}
		}
		if parent < c.least || parent > c.most {
			t.Errorf("%s: the parent was asked %d times in 20 s, want %d to %d", what, parent, c.least, c.most)
		}
	}
}

// A zone that is delegated no more is the parent's, from then on, too.
func TestMovedUp(t *testing.T) {
	w := moving(t)
	w.serve("10.0.1.1", `
org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300
mail.example.org. 60 IN A 192.0.2.10
`)
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = nil, nil
	w.want("mail.example.org.", "A", "NOERROR; mail.example.org. A 192.0.2.10")
	w.asked = nil
	w.want("x.example.org.", "A", "NXDOMAIN")
	if len(w.asked) != 1 || w.asked[0].at != addr("10.0.1.1") {
		t.Errorf("asked %v for the next name", w.asked)
	}
}

// A parent that says nothing changes nothing: servers that were lame are asked once more, as without it.
func TestMovedUnknown(t *testing.T) {
	w := moving(t)
	w.servers[addr("10.0.1.1")] = nil
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.servers[addr(at)] = func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNotAuth) }
	}
	w.want("x.example.org.", "A", "SERVFAIL; EDE 22")
	w.now += 20 * store.Second
	w.serve("10.0.2.1", exampleZone)
	w.serve("10.0.2.2", exampleZone)
	w.asked = nil
	w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
	if up := w.queries("example.org."); up != 1 {
		t.Errorf("the parent was asked %d times", up)
	}
}

// A server in another zone may have another address long before the TTL of that which is kept ends. It is asked for once
// more where no server is of use; and not within ten seconds.
func TestServerMoved(t *testing.T) {
	const shop = `
shop.org. 3600 IN SOA a. x. 1 2 3 4 300
a.shop.org. 60 IN A 192.0.2.1
b.shop.org. 60 IN A 192.0.2.2
`
	host := func(addr string) string {
		return "host.net. 3600 IN SOA a. x. 1 2 3 4 300\nns1.host.net. 3600 IN A " + addr + "\nns2.host.net. 3600 IN A " + addr + "\n"
	}
	for _, old := range []func(*dns.Msg, bool) *dns.Msg{nil, refuse} {
		w := newWorld(t)
		w.serve("10.0.0.1", rootZone)
		w.serve("10.0.1.1", "org. 3600 IN SOA a. x. 1 2 3 4 300\nshop.org. 3600 IN NS ns1.host.net.\nshop.org. 3600 IN NS ns2.host.net.\n")
		w.serve("10.0.1.2", "net. 3600 IN SOA a. x. 1 2 3 4 300\nhost.net. 3600 IN NS dns.host.net.\ndns.host.net. 3600 IN A 10.0.3.1\n")
		w.serve("10.0.3.1", host("10.0.3.2"))
		w.serve("10.0.3.2", shop)
		w.want("a.shop.org.", "A", "NOERROR; a.shop.org. A 192.0.2.1")
		w.want("x.shop.org.", "A", "NXDOMAIN")

		w.now += 20 * store.Second
		w.servers[addr("10.0.3.2")] = old
		w.asked = nil
		w.resolve("y.shop.org.", "A")
		if n := w.queries("ns"); n != 2 {
			t.Errorf("addresses of servers were asked for %d times, want 2", n)
		}
		w.resolve("z.shop.org.", "A")
		if n := w.queries("ns"); n != 0 {
			t.Errorf("at once, addresses of servers were asked for %d times more", n)
		}

		w.now += 20 * store.Second
		w.serve("10.0.3.1", host("10.0.3.3"))
		w.serve("10.0.3.3", shop)
		w.want("b.shop.org.", "A", "NOERROR; b.shop.org. A 192.0.2.2")
		w.queries("")
		const names = 40 // for a few of which any server is asked first, that from before, too
		for i := range names {
			w.want(fmt.Sprintf("x%d.shop.org.", 2+i), "A", "NXDOMAIN")
		}
		if n := w.queries("x"); n < names || n > names*3/2 {
			t.Errorf("%d queries for the next %d names", n, names)
		}
	}
}

// A parent may lead away by an alias, as it does what is asked of it by now. What was put aside before is of no use for
// the new name: its servers are not asked for it, and no other is given up for them.
func TestMovedByAlias(t *testing.T) {
	w := small(t)
	cut := "c.b.example.org. 3600 IN NS ns.c.b.example.org.\nns.c.b.example.org. 3600 IN A 10.0.3.1\n"
	w.serve("10.0.2.1", exampleZone+cut)
	w.serve("10.0.2.2", exampleZone+cut)
	w.serve("10.0.3.1", "c.b.example.org. 3600 IN SOA a. x. 1 2 3 4 300\nwww.c.b.example.org. 3600 IN A 192.0.2.1\n")
	w.serve("10.0.1.2", "net. 3600 IN SOA a. x. 1 2 3 4 300\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.4.1\n")
	w.want("www.c.b.example.org.", "A", "NOERROR; www.c.b.example.org. A 192.0.2.1")

	w.now += 400 * store.Second
	led := 0
	leads := func(q *dns.Msg, _ bool) *dns.Msg {
		led++
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		d, _ := dns.NewRR("example.org. 60 IN DNAME example.net.")
		m.Answer = append(m.Answer, d)
		return m
	}
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = leads, leads
	w.servers[addr("10.0.3.1")] = refuse
	w.serve("10.0.4.1", "example.net. 3600 IN SOA a. x. 1 2 3 4 300\nx.c.b.example.net. 3600 IN A 192.0.2.5\n")
	there, lost := w.servers[addr("10.0.4.1")], 0
	w.servers[addr("10.0.4.1")] = func(q *dns.Msg, tcp bool) *dns.Msg {
		if lost++; lost == 1 {
			return nil
		}
		return there(q, tcp)
	}
	w.want("x.c.b.example.org.", "A",
		"NOERROR; example.org. DNAME example.net.; x.c.b.example.org. CNAME x.c.b.example.net.; x.c.b.example.net. A 192.0.2.5")
	if led == 0 || lost < 2 {
		t.Errorf("the parent was asked %d times, the servers of the other name %d times", led, lost)
	}
	for _, a := range w.asked {
		if a.at == addr("10.0.3.1") && strings.Contains(a.q, "example.net.") {
			t.Errorf("a server of c.b.example.org was asked for %s", a.q)
		}
	}
}

// A zone moves together with one below it: neither has a server left that is known, and the zone above both tells.
func TestMovedTogether(t *testing.T) {
	const (
		cut = "sub.example.org. 3600 IN NS ns.sub.example.org.\nns.sub.example.org. 3600 IN A 10.0.3.1\n"
		sub = "sub.example.org. 3600 IN SOA a. x. 1 2 3 4 300\na.sub.example.org. 60 IN A 192.0.2.1\nb.sub.example.org. 60 IN A 192.0.2.2\n"
	)
	for _, old := range []server{nil, refuse} {
		for _, merged := range []bool{false, true} {
			w := small(t)
			w.serve("10.0.2.1", exampleZone+cut)
			w.serve("10.0.2.2", exampleZone+cut)
			w.serve("10.0.3.1", sub)
			w.want("a.sub.example.org.", "A", "NOERROR; a.sub.example.org. A 192.0.2.1")
			w.now += 20 * store.Second
			for _, at := range []string{"10.0.2.1", "10.0.2.2", "10.0.3.1"} {
				w.servers[addr(at)] = old
			}
			w.want("x.sub.example.org.", "A", "SERVFAIL; EDE 22")
			w.queries("")
			w.want("y.sub.example.org.", "A", "SERVFAIL; EDE 22")
			for _, a := range w.asked {
				if a.at == addr("10.0.1.1") {
					t.Errorf("%s was asked of org at once once more", a.q)
				}
			}

			w.now += 20 * store.Second
			above, moved := sameNames, strings.NewReplacer("10.0.3.1", "10.0.2.3").Replace(exampleZone+cut)
			if merged { // org refers past what was example.org
				above, moved = strings.NewReplacer("10.0.3.1", "10.0.2.3").Replace("org. 3600 IN SOA a. x. 1 2 3 4 300\n"+cut), exampleZone
			}
			w.serve("10.0.1.1", above)
			w.serve("10.0.2.3", moved, sub)
			w.want("b.sub.example.org.", "A", "NOERROR; b.sub.example.org. A 192.0.2.2")
			if gone := w.conf.Stores.Delegations.Get(exampleOrg, w.now) == nil; gone != merged {
				t.Errorf("merged: %v, and example.org is gone: %v", merged, gone)
			}
		}
	}
}

// The parent gets to see the zone's name and no more, also where an answer for that is kept. So all who ask it at one time
// ask the same.
func TestMovedInSilence(t *testing.T) {
	w := moving(t)
	w.want("example.org.", "A", "NOERROR")
	w.serve("10.0.1.1", otherNames)
	w.servers[addr("10.0.2.1")], w.servers[addr("10.0.2.2")] = refuse, refuse
	w.asked = nil
	w.want("mail.example.org.", "A", "NOERROR; mail.example.org. A 192.0.2.9")
	var told []string
	for _, a := range w.asked {
		if a.at == addr("10.0.1.1") {
			told = append(told, a.q)
		}
	}
	if !slices.Equal(told, []string{"example.org. A"}) {
		t.Errorf("the parent was asked %q", told)
	}
}

// A zone may have more servers than are asked for one question: that all of these are silent is enough.
func TestMovedFromMany(t *testing.T) {
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	old := "org. 3600 IN SOA a.nic.org. x. 1 2 3 4 300\n"
	for i := range 8 {
		at := fmt.Sprintf("10.0.2.%d", 11+i)
		old += fmt.Sprintf("example.org. 3600 IN NS ns%d.example.org.\nns%d.example.org. 3600 IN A %s\n", i, i, at)
		w.serve(at, exampleZone)
	}
	w.serve("10.0.1.1", old)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.now += 20 * store.Second
	for i := range 8 {
		delete(w.servers, addr(fmt.Sprintf("10.0.2.%d", 11+i)))
	}
	w.serve("10.0.1.1", sameNames)
	w.serve("10.0.2.3", exampleZone)
	w.asked = nil
	w.want("a.ent.example.org.", "A", "NOERROR; a.ent.example.org. A 192.0.2.2")
	if n := len(w.asked); n < perQuestion || n > 2*perQuestion+8 {
		t.Errorf("%d queries", n)
	}
}

// A zone moves, and so does the server of the one above it, which lies in another zone.
func TestMovedBelowServerMoved(t *testing.T) {
	shop := func(at string) string {
		return "shop.org. 3600 IN SOA a. x. 1 2 3 4 300\nsub.shop.org. 3600 IN NS ns.sub.shop.org.\nns.sub.shop.org. 3600 IN A " + at + "\n"
	}
	const sub = "sub.shop.org. 3600 IN SOA a. x. 1 2 3 4 300\na.sub.shop.org. 60 IN A 192.0.2.1\nb.sub.shop.org. 60 IN A 192.0.2.2\n"
	host := "host.net. 3600 IN SOA a. x. 1 2 3 4 300\nns1.host.net. 3600 IN A 10.0.3.2\n"
	w := newWorld(t)
	w.serve("10.0.0.1", rootZone)
	w.serve("10.0.1.1", "org. 3600 IN SOA a. x. 1 2 3 4 300\nshop.org. 3600 IN NS ns1.host.net.\n")
	w.serve("10.0.1.2", "net. 3600 IN SOA a. x. 1 2 3 4 300\nhost.net. 3600 IN NS dns.host.net.\ndns.host.net. 3600 IN A 10.0.3.1\n")
	w.serve("10.0.3.1", host)
	w.serve("10.0.3.2", shop("10.0.4.1"))
	w.serve("10.0.4.1", sub)
	w.want("a.sub.shop.org.", "A", "NOERROR; a.sub.shop.org. A 192.0.2.1")

	w.now += 20 * store.Second
	w.servers[addr("10.0.3.2")], w.servers[addr("10.0.4.1")] = refuse, nil
	w.serve("10.0.3.1", strings.ReplaceAll(host, "10.0.3.2", "10.0.3.3"))
	w.serve("10.0.3.3", shop("10.0.4.2"))
	w.serve("10.0.4.2", sub)
	w.want("b.sub.shop.org.", "A", "NOERROR; b.sub.shop.org. A 192.0.2.2")
}

// It counts that a parent was asked also if what the client's question may cost was spent by that.
func TestMovedTooDear(t *testing.T) {
	w := moving(t)
	org := w.conf.Stores.Delegations.Get(rrset.MustName("org."), w.now)
	org.Hosts = append(org.Hosts, store.Host{Name: rrset.MustName("b.nic.org."), Addrs: []netip.Addr{addr("10.0.1.3")}})
	w.conf.Minimise, w.conf.Budget.Queries = Off, 3
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.servers[addr(at)] = refuse
	}
	w.servers[addr("10.0.1.1")] = nil
	parent := 0
	for i := range 5 {
		w.resolve(fmt.Sprintf("x%d.example.org.", i), "A")
		for _, a := range w.asked {
			if a.at == addr("10.0.1.1") || a.at == addr("10.0.1.3") {
				parent++
			}
		}
		w.asked = nil
	}
	if parent != 1 {
		t.Errorf("the parent was asked %d times", parent)
	}
}

// Of a parent that was lame a while ago the servers are asked once more, as those of the zone itself are.
func TestMovedBelowLame(t *testing.T) {
	w := moving(t)
	for _, at := range []string{"10.0.2.1", "10.0.2.2"} {
		w.servers[addr(at)] = refuse
	}
	w.serve("10.0.1.1", sameNames)
	org := rrset.MustName("org.")
	s := w.conf.Stores.Servers.Get(netip.AddrPortFrom(addr("10.0.1.1"), 53), func() any { return nil })
	s.SetLame(org, false, w.now+900*store.Second)
	w.want("mail.example.org.", "A", "NOERROR; mail.example.org. A 192.0.2.9")
	if n := w.queries("example.org."); n != 1 {
		t.Errorf("the parent was asked %d times", n)
	}
}
