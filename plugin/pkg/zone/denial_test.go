package zone

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// authoritative is the names of a model that have NSEC or NSEC3 records: those with data or below which there is some,
// unless they lie below a cut or a DNAME.
func (m *model) authoritative(withEmpty bool) (names []string) {
	for name := range m.exists {
		hidden := !withEmpty && len(m.sets[name]) == 0
		for _, up := range m.ancestors(name) {
			hidden = hidden || up != name && (up != m.origin && m.sets[up][dns.TypeNS] != nil || m.sets[up][dns.TypeDNAME] != nil)
		}
		if !hidden {
			names = append(names, name)
		}
	}
	return names
}

// types is what a name has, as bitmaps tell.
func (m *model) types(name string, more ...uint16) (all []uint16) {
	for typ := range m.sets[name] {
		all = append(all, typ)
	}
	all = append(all, more...)
	slices.Sort(all)
	return all
}

// withNSEC is a zone's text with a complete chain of NSEC records (RFC 4034 §4).
func withNSEC(m *model, text string) string {
	names := m.authoritative(false)
	slices.SortFunc(names, func(a, b string) int { return wire.Compare(wire.MustName(a), wire.MustName(b)) })
	for i, name := range names {
		rr := &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: 60},
			NextDomain: names[(i+1)%len(names)], TypeBitMap: m.types(name, dns.TypeRRSIG, dns.TypeNSEC)}
		text += rr.String() + "\n"
	}
	return text
}

// withNSEC3 is a zone's text with a complete chain of NSEC3 records (RFC 5155 §7.1).
func withNSEC3(m *model, text string) string {
	const salt, iterations = "beef", 2
	hashes := map[string]string{}
	for _, name := range m.authoritative(true) {
		hashes[dns.HashName(name, dns.SHA1, iterations, salt)] = name
	}
	var order []string
	for h := range hashes {
		order = append(order, h)
	}
	slices.Sort(order)
	text += fmt.Sprintf("%s 0 IN NSEC3PARAM 1 0 %d %s\n", m.origin, iterations, salt)
	for i, h := range order {
		rr := &dns.NSEC3{Hdr: dns.RR_Header{Name: h + "." + m.origin, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: 60}, Hash: 1, Iterations: iterations,
			SaltLength: 2, Salt: salt, HashLength: 20, NextDomain: order[(i+1)%len(order)], TypeBitMap: m.types(hashes[h])}
		text += rr.String() + "\n"
	}
	return text
}

// buildNSEC3 is build for a zone that may have NSEC3 records.
func buildNSEC3(t testing.TB, text string) *Zone {
	t.Helper()
	b := NewBuilder(wire.MustName("example.org"), t.Logf)
	b.AllowNSEC3()
	zp := dns.NewZoneParser(strings.NewReader(text), "example.org.", "db")
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if zp.Err() != nil || err != nil {
		t.Fatal(zp.Err(), err)
	}
	return z
}

// proofs is the NSEC and NSEC3 records of a reply's authority section.
type proofs struct {
	nsec  []*dns.NSEC
	nsec3 []*dns.NSEC3
}

// matching is the types that the record of exactly a name tells.
func (p proofs) matching(name string) (types []uint16, ok bool) {
	for _, r := range p.nsec {
		if strings.EqualFold(r.Hdr.Name, name) {
			return r.TypeBitMap, true
		}
	}
	for _, r := range p.nsec3 {
		if r.Match(name) {
			return r.TypeBitMap, true
		}
	}
	return nil, false
}

// covered reports whether a record shows that there is no such name.
func (p proofs) covered(name string) bool {
	n := wire.MustName(strings.ToLower(name))
	for _, r := range p.nsec {
		owner, next := wire.MustName(strings.ToLower(r.Hdr.Name)), wire.MustName(strings.ToLower(r.NextDomain))
		if wire.Compare(owner, n) < 0 && (wire.Compare(n, next) < 0 || wire.Compare(next, owner) <= 0) {
			return true
		}
	}
	return slices.ContainsFunc(p.nsec3, func(r *dns.NSEC3) bool { return r.Cover(name) })
}

// encloser is the closest encloser of a name that does not exist, as the proof tells it, and the next closer name that
// is covered (RFC 5155 §8.3; for NSEC RFC 7129 §5.5).
func (m *model) encloser(name string) (encloser, nextCloser string) {
	for encloser = name; !m.exists[encloser]; encloser = above(encloser) {
		nextCloser = encloser
	}
	return encloser, nextCloser
}

// lacking says what is not proved of a denial of name and type, "" if all is (RFC 4035 §5.4, RFC 5155 §8.4 to §8.7).
func (m *model) lacking(p proofs, name string, qtype uint16) string {
	deny := func(at string) string {
		if types, ok := p.matching(at); ok {
			if slices.Contains(types, qtype) || slices.Contains(types, dns.TypeCNAME) {
				return at + " is shown to have the type"
			}
			return ""
		}
		if len(p.nsec) > 0 && len(m.sets[at]) == 0 { // an empty non-terminal: the next name lies below it
			for _, r := range p.nsec {
				if p.covered(at) && dns.IsSubDomain(at, strings.ToLower(r.NextDomain)) {
					return ""
				}
			}
		}
		return at + " has no record that denies the type"
	}
	if m.exists[name] {
		return deny(name)
	}
	encloser, next := m.encloser(name)
	star := "*." + encloser
	if _, ok := p.matching(encloser); len(p.nsec3) > 0 && !ok {
		return "the closest encloser " + encloser
	}
	if len(p.nsec3) > 0 && !p.covered(next) || len(p.nsec) > 0 && !p.covered(name) {
		return "that there is no " + next
	}
	if m.exists[star] {
		return deny(star)
	}
	if !p.covered(star) {
		return "that there is no " + star
	}
	return ""
}

// ask3 is the reply to a question with DO over a stream, and how it came about.
func ask3(t *testing.T, z *Zone, question dns.Question) (*dns.Msg, Result, string) {
	t.Helper()
	m := new(dns.Msg).SetEdns0(1232, true)
	m.Question = []dns.Question{question}
	var q wire.Query
	if err := q.SetMsg(m, wire.Peer{Proto: wire.TCP, Limit: wire.MaxMessage}); err != nil {
		t.Fatal(err)
	}
	var w wire.Reply
	w.Reset(nil)
	var a Answerer
	r := a.Answer(z, &w, &q)
	if r == External {
		r = a.Alone()
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatal(question, err)
	}
	return reply, r, wire.Text(a.name)
}

// growing is a zone that takes changes; grownOf is one that was made of its SOA record alone, by changes of a few names
// each.
func growing(t testing.TB, z *Zone) *Zone {
	t.Helper()
	z, err := z.Growing()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func grownOf(t testing.TB, z *Zone) *Zone {
	t.Helper()
	b := NewBuilder(z.Origin(), t.Logf)
	w := z.Walk()
	var rest []Record
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rec = Record{slices.Clone(rec.Owner), rec.Type, rec.TTL, slices.Clone(rec.RData)}
		if rec.Type != dns.TypeSOA {
			rest = append(rest, rec)
		} else if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RData); err != nil {
			t.Fatal(err)
		}
	}
	bare, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	now := growing(t, bare)
	for part := range slices.Chunk(rest, 7) {
		c := now.Change()
		for _, rec := range part {
			if err := c.of(rec).Add(rec.Type, rec.TTL, rec.RData); err != nil {
				t.Fatal(err)
			}
		}
		if now, _, err = c.Zone(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := dump(now), dump(z); got != want {
		t.Fatalf("grown: %s", onlyIn(got, want))
	}
	return now
}

// Whatever a signed zone does not have, it proves to who asks with DO, by NSEC records (RFC 4035 §3.1.3) as by NSEC3
// records (RFC 5155 §7.2): that names and types do not exist, that no wildcard stands for them, and that a delegation
// has no DS records. Only records of its own chain are in the proof, each once.
func TestDenialsAreProved(t *testing.T) {
	asItIs := func(_ testing.TB, z *Zone) *Zone { return z }
	for _, kind := range []struct {
		name string
		with func(*model, string) string
		as   func(testing.TB, *Zone) *Zone
		part uint64 // of all seeds
	}{
		{"NSEC", withNSEC, asItIs, 1}, {"NSEC3", withNSEC3, asItIs, 1},
		{"NSEC, growing", withNSEC, growing, 10}, {"NSEC3, growing", withNSEC3, growing, 10},
		{"NSEC, grown", withNSEC, grownOf, 20}, {"NSEC3, grown", withNSEC3, grownOf, 20},
	} {
		denied, referred, expanded, part := 0, 0, 0, int(kind.part)
		for seed := range seeds / kind.part {
			text := zonetest.New("example.org.", seed)
			m := newModel("example.org.", text.Text)
			z := kind.as(t, buildNSEC3(t, kind.with(m, text.Text)))
			if !z.Signed() || z.Names() != len(m.exists) {
				t.Fatalf("%s, seed %d: signed %v, %d names, want %d", kind.name, seed, z.Signed(), z.Names(), len(m.exists))
			}
			for _, q := range asks(text, seed) {
				reply, r, last := ask3(t, z, q)
				var p proofs
				seen := map[string]bool{}
				for _, rr := range reply.Ns {
					if seen[rr.String()] {
						t.Fatalf("%s, seed %d, %v: twice:\n%v", kind.name, seed, q, reply)
					}
					seen[rr.String()] = true
					switch rr := rr.(type) {
					case *dns.NSEC:
						p.nsec = append(p.nsec, rr)
					case *dns.NSEC3:
						p.nsec3 = append(p.nsec3, rr)
					}
				}
				lack := ""
				switch r {
				case NoData, Empty, NXDomain:
					denied++
					lack = m.lacking(p, last, q.Qtype)
				case Referral:
					referred++
					cut := strings.ToLower(reply.Ns[0].Header().Name)
					if types, ok := p.matching(cut); m.sets[cut][dns.TypeDS] == nil && (!ok || slices.Contains(types, dns.TypeDS) || !slices.Contains(types, dns.TypeNS)) {
						lack = cut + " has no DS"
					} else if m.sets[cut][dns.TypeDS] != nil && !slices.ContainsFunc(reply.Ns, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeDS }) {
						lack = "the DS records"
					}
				case Hit:
					if !m.exists[last] && m.sets["*."+func() string { e, _ := m.encloser(last); return e }()] != nil { // RFC 4035 §3.1.3.3
						expanded++
						if _, next := m.encloser(last); !p.covered(last) && !p.covered(next) {
							lack = "that there is no " + next
						}
					}
				}
				if lack != "" {
					t.Fatalf("%s, seed %d, %s %s, at its end %s: not proved: %s\n%v\n%s", kind.name, seed, q.Name, dns.Type(q.Qtype), last, lack, reply, text.Text)
				}
			}
		}
		if denied < 1000/part || referred < 100/part || expanded < 20/part {
			t.Errorf("%s: %d denials, %d referrals, %d syntheses only", kind.name, denied, referred, expanded)
		}
	}
}
