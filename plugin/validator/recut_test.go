package validator

import (
	"crypto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// owner is who signs for a zone.
type owner struct {
	*dns.DNSKEY
	priv crypto.Signer
}

func newOwner(t *testing.T, zone string) *owner {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: 1, Ttl: 3600}, Flags: 257, Protocol: 3, Algorithm: dns.ED25519}
	p := generate(t, k)
	return &owner{k, p.(crypto.Signer)}
}

// signed is a record with its signature.
func (o *owner) signed(t *testing.T, rr dns.RR) []dns.RR {
	t.Helper()
	g := &dns.RRSIG{
		Hdr: dns.RR_Header{Name: rr.Header().Name, Rrtype: dns.TypeRRSIG, Class: 1, Ttl: 3600}, Algorithm: o.Algorithm, KeyTag: o.KeyTag(), SignerName: o.Hdr.Name,
		Inception: uint32(time.Now().Add(-time.Hour).Unix()), Expiration: uint32(time.Now().Add(24 * time.Hour).Unix()),
	}
	if err := g.Sign(o.priv, []dns.RR{rr}); err != nil {
		t.Fatal(err)
	}
	return []dns.RR{rr, g}
}

// realm is a zone example with room for zones below, whose cuts move.
type realm struct {
	*source
	t      *testing.T
	parent *owner
	child  map[string]*owner
}

func newRealm(t *testing.T) (*Validator, *realm) {
	t.Helper()
	r := &realm{&source{replies: map[string]*dns.Msg{}}, t, newOwner(t, "example."), map[string]*owner{}}
	r.put(r.parent, r.parent.DNSKEY)
	r.anchor = strings.ReplaceAll(r.parent.ToDS(dns.SHA256).String(), "\t", " ")
	return above(t, r.source, ""), r
}

func (r *realm) put(by *owner, rr dns.RR) {
	r.replies[rr.Header().Name+dns.Type(rr.Header().Rrtype).String()] = &dns.Msg{Answer: by.signed(r.t, rr)}
}

// cut has a zone begin at a name below another one.
func (r *realm) cut(above *owner, name string) *owner {
	o := newOwner(r.t, name)
	ds := o.ToDS(dns.SHA256)
	ds.Hdr = dns.RR_Header{Name: name, Rrtype: dns.TypeDS, Class: 1, Ttl: 3600}
	r.put(above, ds)
	r.put(o, o.DNSKEY)
	return o
}

// merge has no zone begin at a name any more.
func (r *realm) merge(into *owner, name string) {
	r.replies[name+"DS"] = &dns.Msg{Ns: into.signed(r.t, test.NSEC(name+" 3600 IN NSEC "+"\\000."+name+" TXT RRSIG NSEC"))}
}

// secure reports what the client gets of a name: whether AD is set, and how many queries that took.
func (r *realm) secure(v *Validator, name string) (secure bool, asked int) {
	before := r.asked
	m, _, err := ask(r.t, v, name, do)
	return err == nil && m.AuthenticatedData, r.asked - before
}

// What is kept of the chain gives way to what is signed now, when zones begin elsewhere: a signed zone, and one below that,
// are merged into the parent; names are made zones of their own, signed or not.
func TestCutMoves(t *testing.T) {
	a := func(name string) dns.RR { return test.A(name + " 300 IN A 192.0.2.1") }
	t.Run("merged", func(t *testing.T) {
		v, r := newRealm(t)
		sub := r.cut(r.parent, "sub.example.")
		low := r.cut(sub, "low.sub.example.")
		r.put(low, a("www.low.sub.example."))
		if ok, _ := r.secure(v, "www.low.sub.example."); !ok {
			t.Fatal("before: not secure")
		}
		r.merge(r.parent, "sub.example.")
		r.merge(r.parent, "low.sub.example.")
		for _, name := range []string{"www.low.sub.example.", "x.low.sub.example.", "y.sub.example."} {
			r.put(r.parent, a(name))
			if ok, n := r.secure(v, name); !ok || n > 4 {
				t.Errorf("%s: secure %v after %d queries", name, ok, n)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		v, r := newRealm(t)
		r.put(r.cut(r.parent, "sub.example."), a("www.sub.example."))
		if ok, _ := r.secure(v, "www.sub.example."); !ok {
			t.Fatal("before: not secure")
		}
		r.merge(r.parent, "sub.example.")
		r.replies["sub.example.A"] = &dns.Msg{Ns: slices.Concat(
			r.parent.signed(t, test.SOA("example. 3600 IN SOA a. b. 1 2 3 4 5")), r.replies["sub.example.DS"].Ns)}
		if ok, n := r.secure(v, "sub.example."); !ok || n > 3 {
			t.Errorf("NODATA: secure %v after %d queries", ok, n)
		}
	})
	t.Run("made", func(t *testing.T) {
		v, r := newRealm(t)
		r.merge(r.parent, "sub.example.")
		r.replies["www.sub.example.A"] = &dns.Msg{Answer: []dns.RR{a("www.sub.example.")}}
		r.replies["www.sub.example.DS"] = r.replies["sub.example.DS"]
		if ok, _ := r.secure(v, "www.sub.example."); ok || v.memory.Node(rrset.MustName("sub.example."), time.Now()) == nil {
			t.Fatal("before: secure, or nothing kept")
		}
		r.put(r.cut(r.parent, "sub.example."), a("new.sub.example."))
		if ok, n := r.secure(v, "new.sub.example."); !ok || n > 4 {
			t.Errorf("secure %v after %d queries", ok, n)
		}
	})
	t.Run("made unsigned", func(t *testing.T) {
		v, r := newRealm(t)
		r.merge(r.parent, "sub.example.")
		r.replies["www.sub.example.A"] = &dns.Msg{Answer: []dns.RR{a("www.sub.example.")}}
		r.secure(v, "www.sub.example.")
		r.replies["sub.example.DS"] = &dns.Msg{Ns: r.parent.signed(t, test.NSEC("sub.example. 3600 IN NSEC z.example. NS RRSIG NSEC"))}
		r.replies["new.sub.example.A"] = &dns.Msg{Answer: []dns.RR{a("new.sub.example.")}}
		r.replies["new.sub.example.DS"] = &dns.Msg{Ns: []dns.RR{test.SOA("sub.example. 3600 IN SOA a. b. 1 2 3 4 5")}}
		if m, _, err := ask(t, v, "new.sub.example.", do); err != nil || m.AuthenticatedData || len(m.Answer) == 0 {
			t.Errorf("%v %v", m, err)
		}
	})
}

// A zone that is signed no more is insecure as soon as its parent has no DS records of it, however long those were to be
// kept. While it has them, what is not signed is bogus, and they are asked for once in bogus_ttl only.
func TestSignedNoMore(t *testing.T) {
	get := func(r *realm, v *Validator, name string, typ uint16) (rcode, asked int) {
		r.replies[name+"A"] = &dns.Msg{Answer: []dns.RR{test.A(name + " 300 IN A 192.0.2.1")}}
		for _, none := range []string{"DS", "AAAA"} {
			r.replies[name+none] = &dns.Msg{Ns: []dns.RR{test.SOA("sub.example. 3600 IN SOA a. b. 1 2 3 4 5")}}
		}
		before := r.asked
		m, rcode, _ := ask(t, v, name, func(m *dns.Msg) { m.Question[0].Qtype = typ })
		if m == nil {
			return rcode, r.asked - before
		}
		if m.AuthenticatedData {
			t.Errorf("%s: secure", name)
		}
		return m.Rcode, r.asked - before
	}
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, stands := range []bool{false, true} {
			v, r := newRealm(t)
			r.put(r.cut(r.parent, "sub.example."), test.A("www.sub.example. 300 IN A 192.0.2.1"))
			if ok, _ := r.secure(v, "www.sub.example."); !ok {
				t.Fatal("before: not secure")
			}
			want := dns.RcodeServerFailure
			if !stands {
				delete(r.replies, "sub.example.DNSKEY")
				r.replies["sub.example.DS"] = &dns.Msg{Ns: r.parent.signed(t, test.NSEC("sub.example. 3600 IN NSEC z.example. NS RRSIG NSEC"))}
				want = dns.RcodeSuccess
			}
			first := 0
			for i, name := range []string{"a.sub.example.", "b.sub.example.", "c.sub.example."} {
				rcode, n := get(r, v, name, typ)
				if i == 0 {
					first = n
				}
				if rcode != want || i > 0 && n >= first {
					t.Errorf("%s %s, DS records: %v: rcode %d after %d queries, %d at first", name, dns.Type(typ), stands, rcode, n, first)
				}
			}
		}
	}
}

// Who signs above a zone that is still there is not believed, and has the chain asked for anew once in bogus_ttl only.
func TestCutStands(t *testing.T) {
	v, r := newRealm(t)
	r.put(r.cut(r.parent, "sub.example."), test.A("www.sub.example. 300 IN A 192.0.2.1"))
	if ok, _ := r.secure(v, "www.sub.example."); !ok {
		t.Fatal("before: not secure")
	}
	most := 0
	for i, name := range []string{"a.sub.example.", "b.sub.example.", "c.sub.example."} {
		r.put(r.parent, test.A(name+" 300 IN A 192.0.2.1"))
		ok, n := r.secure(v, name)
		if ok || i > 0 && n >= most {
			t.Errorf("%s: secure %v after %d queries, %d at first", name, ok, n, most)
		}
		most = max(most, n)
	}
	if ok, n := r.secure(v, "www.sub.example."); !ok || n != 1 {
		t.Errorf("after: secure %v after %d queries", ok, n)
	}
}
