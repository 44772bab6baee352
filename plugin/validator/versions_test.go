package validator

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// versions answers as a resolver of a zone whose two servers have versions of it that different keys have signed. Data is
// told by the one whose turn it is, and keys by the other one, unless it is said who is to tell them.
type versions struct {
	of    [2]*source
	turn  int
	last  int  // who told data last
	strip bool // the first server leaves signatures out
	asked []string
}

func (s *versions) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	zone, at, o, by := rrset.MustName("example."), [2]netip.AddrPort{first, second}, advice.Of(ctx), s.turn
	name, _ := rrset.Name(r.Question[0].Name)
	keys := r.Question[0].Qtype == dns.TypeDNSKEY
	if keys {
		by = 1 - s.last
		if o.Preferred() == at[s.last] {
			by = s.last
		}
	}
	doubted := func() bool { return o.Doubted(advice.Teller{Zone: zone, Server: at[by], Name: name}) }
	if doubted() {
		if by = 1 - by; doubted() {
			return dns.RcodeServerFailure, nil
		}
	}
	if !keys {
		s.last = by
	}
	o.Add(advice.Teller{Zone: zone, Server: at[by], Name: name})
	s.asked = append(s.asked, at[by].Addr().String()+" "+r.Question[0].Name+dns.Type(r.Question[0].Qtype).String())
	if s.strip && by == 0 {
		w = liar{w}
	}
	return s.of[by].ServeDNS(ctx, w, r)
}

func (s *versions) Learn(any, string, bool, []advice.Secure) {}

// newVersions is a validator above both.
func newVersions(t *testing.T) (*Validator, *versions) {
	s := &versions{}
	var anchors []string
	for i := range s.of {
		o := newOwner(t, "example.")
		s.of[i] = &source{replies: map[string]*dns.Msg{"example.DNSKEY": {Answer: o.signed(t, o.DNSKEY)}}}
		for _, host := range []string{"a", "b", "c", "d"} {
			name := host + ".example."
			s.of[i].replies[name+"A"] = &dns.Msg{Answer: o.signed(t, test.A(name+" 300 IN A 192.0.2.1"))}
		}
		anchors = append(anchors, strings.ReplaceAll(o.ToDS(dns.SHA256).String(), "\t", " "))
	}
	s.of[0].anchor = anchors[0]
	v := above(t, s.of[0], "anchor \""+anchors[1]+"\"")
	v.Next, v.learner = plugin.HandlerFunc(s.ServeDNS), s
	return v, s
}

// While one of two servers has an older version of the zone, signed by another key, whoever tells a name first: the keys
// that it is checked with are its server's.
func TestKeysOfWhoTold(t *testing.T) {
	v, s := newVersions(t)
	for i, name := range []string{"a.example.", "b.example.", "c.example.", "d.example."} {
		s.turn, s.asked = i%2, nil
		if m, _, err := ask(t, v, name, do); err != nil || !m.AuthenticatedData {
			t.Errorf("%s, told by server %d: %v %v, asked %q", name, i%2, m, err, s.asked)
		}
	}
}

// Who has told something without signatures is not asked for keys first.
func TestKeysOfWhoSigns(t *testing.T) {
	v, s := newVersions(t)
	s.strip = true
	m, _, err := ask(t, v, "a.example.", do)
	if err != nil || !m.AuthenticatedData || slices.Contains(s.asked, "192.0.2.1 example.DNSKEY") {
		t.Errorf("%v %v, asked %q", m, err, s.asked)
	}
}

// What a resolver keeps of DS records may be of another version of the zone above, too: it is asked for again, when the
// chain is walked anew since a reply was bogus.
func TestKeptDSIsAskedForAgain(t *testing.T) {
	v, r := newRealm(t)
	o := r.cut(r.parent, "sub.example.")
	for _, name := range []string{"www.sub.example.", "x.sub.example."} {
		r.put(o, test.A(name+" 300 IN A 192.0.2.1"))
	}
	if ok, _ := r.secure(v, "www.sub.example."); !ok {
		t.Fatal("not secure")
	}
	var asked []string
	kept := newOwner(t, "example.").signed(t, r.replies["sub.example.DS"].Answer[0])
	v.learner = &versions{}
	v.Next = plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
		q, s := m.Question[0], advice.Of(ctx)
		name, _ := rrset.Name(q.Name)
		asked = append(asked, q.Name+dns.Type(q.Qtype).String())
		if q.Qtype == dns.TypeDS && !s.Again() { // from what is kept: nobody has told it now
			return (&source{replies: map[string]*dns.Msg{q.Name + "DS": {Answer: kept}}}).ServeDNS(ctx, w, m)
		}
		s.Add(advice.Teller{Zone: rrset.Parent(name), Server: first, Name: name})
		if q.Name == "x.sub.example." && !s.Again() {
			bad := newOwner(t, "sub.example.").signed(t, test.A(q.Name+" 300 IN A 192.0.2.9"))
			return (&source{replies: map[string]*dns.Msg{q.Name + "A": {Answer: bad}}}).ServeDNS(ctx, w, m)
		}
		return r.ServeDNS(ctx, w, m)
	})
	if m, _, err := ask(t, v, "x.sub.example.", do); err != nil || !m.AuthenticatedData {
		t.Errorf("%v %v, asked for %q", m, err, asked)
	}
}
