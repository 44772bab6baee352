package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// rootCopy answers as the world's root does, unless it is silent.
type rootCopy struct {
	*authority
	gone, silent bool
}

func (c *rootCopy) Has() bool { return !c.gone }

func (c *rootCopy) Reply(name string, typ uint16) *rrset.Message {
	if c.silent {
		return nil
	}
	b, err := c.answer(new(dns.Msg).SetQuestion(rrset.Text(name), typ), false).Pack()
	if err != nil {
		return nil
	}
	m, err := rrset.Parse(b)
	if err != nil {
		return nil
	}
	return m
}

// With a copy of the root zone none of the root's servers is asked, but for records of the root itself, and when the copy
// has gone, has no answer, or is doubted (RFC 8806).
func TestLocalRootIsAskedFirst(t *testing.T) {
	for what, c := range map[string]struct {
		name, typ, want string
		change          func(*rootCopy)
		root            int // queries to the root
	}{
		"referral":  {"www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1", nil, 0},
		"denial":    {"www.no.", "A", "NXDOMAIN", nil, 0},
		"DS":        {"org.", "DS", "NOERROR", nil, 0},
		"the root":  {".", "NS", "NOERROR; . NS a.root.", nil, 1},
		"its keys":  {".", "DNSKEY", "NOERROR", nil, 1},
		"gone":      {"www.no.", "A", "NXDOMAIN", func(c *rootCopy) { c.gone = true }, 3},
		"no answer": {"www.no.", "A", "NXDOMAIN", func(c *rootCopy) { c.silent = true }, 2},
	} {
		w := small(t)
		root := &rootCopy{authority: &authority{[]*zoneText{parseZone(t, rootZone)}}}
		if c.change != nil {
			c.change(root)
		}
		w.conf.LocalRoot = root
		r := w.want(c.name, c.typ, c.want)
		n := 0
		for _, a := range w.asked {
			if a.at == addr("10.0.0.1") {
				n++
			}
		}
		if n != c.root || r.Queries < n {
			t.Errorf("%s: the root was asked %d times, want %d: %v", what, n, c.root, w.asked)
		}
	}
	w, s := small(t), &advice.Source{}
	w.conf.LocalRoot = &rootCopy{authority: &authority{[]*zoneText{parseZone(t, rootZone)}}}
	s.Doubt("")
	r := New(w.conf, Question{rrset.MustName("www.no."), dns.TypeA}, false)
	r.Trace(s)
	if a := r.Step(Event{Kind: Begun}, w.now); len(a) != 1 || a[0].Kind != Send || a[0].Zone != rrset.Root {
		t.Errorf("what is doubted: %+v", a)
	}
}

// The root's keys come from the copy when the first server of the root is of no use: they are what all else in it is
// validated with.
func TestLocalRootHasKeys(t *testing.T) {
	for what, answer := range map[string]server{
		"silent":  func(*dns.Msg, bool) *dns.Msg { return nil },
		"refuses": func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) },
	} {
		w := small(t)
		w.servers[addr("10.0.0.1")] = answer
		root := &rootCopy{authority: &authority{[]*zoneText{parseZone(t, rootZone+". 86400 IN DNSKEY 257 3 13 AAAA\n")}}}
		w.conf.LocalRoot = root
		if w.want(".", "DNSKEY", "NOERROR; . DNSKEY "); len(w.asked) != 1 {
			t.Errorf("%s: asked %v", what, w.asked)
		}
		root.gone = true
		w.now += 86401 * store.Second
		w.want(".", "DNSKEY", "SERVFAIL; EDE 22")
	}
}
