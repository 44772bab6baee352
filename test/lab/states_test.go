package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// asked is a question, and what clients hear: return code, AD, info codes.
type asked struct {
	name string
	typ  uint16
	want string
}

// statesLab is zones of which each has one thing that decides what is said of it.
type statesLab struct {
	zones []*hostile
	asked []asked
}

// add adds a zone whose names are asked for by their address.
func (l *statesLab) add(name, want string, algorithm uint8, bits int) *hostile {
	h := newHostile(name+".", algorithm, bits)
	l.zones, l.asked = append(l.zones, h), append(l.asked, asked{"www." + h.name, dns.TypeA, want})
	return h
}

// ask adds a question.
func (l *statesLab) ask(name string, typ uint16, want string) {
	l.asked = append(l.asked, asked{name, typ, want})
}

const secureOnly, unsignedOnly = "NOERROR 1", "NOERROR 0"

// algorithms is zones by what signs them (R26, R27). sha1 is what RSA with SHA-1 is worth.
func (l *statesLab) algorithms(sha1 string) {
	l.add("good", secureOnly, dns.ECDSAP256SHA256, 256)
	for name, a := range map[string]struct {
		algorithm uint8
		bits      int
		want      string
	}{
		"a5": {dns.RSASHA1, 1024, sha1}, "a7": {dns.RSASHA1NSEC3SHA1, 1024, sha1}, "a8": {dns.RSASHA256, 2048, secureOnly}, "a10": {dns.RSASHA512, 1024, secureOnly},
		"a14": {dns.ECDSAP384SHA384, 384, secureOnly}, "a15": {dns.ED25519, 256, secureOnly},
	} {
		l.add(name, a.want, a.algorithm, a.bits)
	}
	for _, algorithm := range []uint8{0, 1, 3, 6, 12, 17, 23, 252, 253, 254, 255} {
		h := l.add(fmt.Sprint("unknown", algorithm), unsignedOnly+" 1", dns.ECDSAP256SHA256, 256)
		h.ds[0].(*dns.DS).Algorithm = algorithm
	}
}

// digests is zones by their DS records (R27): more than one that is supported has to be one of the better ones (RFC 4509 §3).
func (l *statesLab) digests() {
	for name, d := range map[string]struct {
		right, wrong []uint8
		want         string
	}{
		"d1": {[]uint8{1}, nil, secureOnly}, "d4": {[]uint8{4}, nil, secureOnly}, "d2-not-1": {[]uint8{2}, []uint8{1}, secureOnly},
		"d1-not-2": {[]uint8{1}, []uint8{2}, "SERVFAIL 0 9"}, "d1-not-4": {[]uint8{1}, []uint8{4}, "SERVFAIL 0 9"}, "d4-not-2": {[]uint8{4}, []uint8{2}, secureOnly},
		"not-2": {nil, []uint8{2}, "SERVFAIL 0 9"},
	} {
		h := l.add(name, d.want, dns.ECDSAP256SHA256, 256)
		h.ds = nil
		for _, kind := range d.wrong {
			h.ds = append(h.ds, wrong(h.key.ToDS(kind)))
		}
		for _, kind := range d.right {
			h.ds = append(h.ds, h.key.ToDS(kind))
		}
	}
	for _, kind := range []uint8{0, 3, 5, 6, 255} {
		h := l.add(fmt.Sprint("d", kind, "-only"), unsignedOnly+" 2", dns.ECDSAP256SHA256, 256)
		h.ds[0].(*dns.DS).DigestType = kind
	}
	for n, want := range map[int]string{7: secureOnly, 8: "SERVFAIL 0 9"} { // of more than eight the others are not looked at
		h := l.add(fmt.Sprint("ds-behind-", n), want, dns.ECDSAP256SHA256, 256)
		h.ds = append(h.wrongDS(n), h.ds...)
	}
}

// times is zones by the time of their signatures, of which clocks may be wrong by a tenth, an hour at least (R28).
func (l *statesLab) times() {
	for name, s := range map[string]struct {
		from, to time.Duration
		want     string
	}{
		"expired": {-100 * time.Hour, -12 * time.Hour, "SERVFAIL 0 7"}, "expired-just": {-100 * time.Hour, -5 * time.Hour, secureOnly}, "expired-short": {-3 * time.Hour, -50 * time.Minute, secureOnly},
		"future": {12 * time.Hour, 100 * time.Hour, "SERVFAIL 0 8"}, "future-just": {5 * time.Hour, 100 * time.Hour, secureOnly}, "reversed": {2 * time.Hour, -2 * time.Hour, "SERVFAIL 0 25"},
	} {
		h := l.add(name, s.want, dns.ECDSAP256SHA256, 256)
		h.sign = keysWell(func(p *pen, set ...dns.RR) []dns.RR {
			now := time.Now()
			return append(set, p.sign(set, func(g *dns.RRSIG) {
				g.Inception, g.Expiration = uint32(now.Add(s.from).Unix()), uint32(now.Add(s.to).Unix())
			}))
		})
	}
}

// faults is zones whose keys or signatures are none (R29, R30).
func (l *statesLab) faults() {
	h := l.add("zone-bit", "SERVFAIL 0 11", dns.ECDSAP256SHA256, 256)
	h.key.Flags = 1
	h.ds = []dns.RR{h.key.ToDS(dns.SHA256)}
	h = l.add("revoked", "SERVFAIL 0 9", dns.ECDSAP256SHA256, 256)
	h.key.Flags |= dns.REVOKE
	h.ds = []dns.RR{h.key.ToDS(dns.SHA256)}
	h = l.add("unsigned", "SERVFAIL 0 10", dns.ECDSAP256SHA256, 256)
	h.sign = keysWell(func(_ *pen, set ...dns.RR) []dns.RR { return set })
	for name, signer := range map[string]string{"by-parent": ".", "by-sibling": "good.", "by-name": "www.by-name."} {
		l.add(name, "SERVFAIL 0 6", dns.ECDSAP256SHA256, 256).sign = keysWell(func(p *pen, set ...dns.RR) []dns.RR {
			return append(set, p.sign(set, func(g *dns.RRSIG) { g.SignerName = signer }))
		})
	}
	l.add("by-two", "SERVFAIL 0 6", dns.ECDSAP256SHA256, 256).sign = keysWell(func(p *pen, set ...dns.RR) []dns.RR { // the zone's own does not hold
		own := p.sign(set, nil)
		own.Expiration--
		return append(set, own, p.sign(set, func(g *dns.RRSIG) { g.SignerName = "." }))
	})
	l.add("labels", "SERVFAIL 0 6", dns.ECDSAP256SHA256, 256).sign = keysWell(func(p *pen, set ...dns.RR) []dns.RR {
		sig := p.sign(set, nil)
		sig.Labels = 0
		return append(set, sig)
	})
}

// denials is zones by what denies names: NSEC3 of so many iterations, and NSEC records that reach too far (R36, R40).
func (l *statesLab) denials() {
	for n, want := range map[int]string{0: "NXDOMAIN 1", 50: "NXDOMAIN 1", 51: "NXDOMAIN 0 27", 500: "NXDOMAIN 0 27", 501: "SERVFAIL 0 27"} {
		l.add(fmt.Sprint("iterations", n), want, dns.ECDSAP256SHA256, 256).reply = onlyNSEC3(n, 0)
	}
	l.add("all", "NXDOMAIN 1", dns.ECDSAP256SHA256, 256).reply = onlyNSEC("all.")
	l.add("beyond", "SERVFAIL 0 12", dns.ECDSAP256SHA256, 256).reply = onlyNSEC("zzz.")
}

// onlyNSEC denies all names by one record, that of the apex.
func onlyNSEC(next string) func(h *hostile, name string) *dns.Msg {
	return func(h *hostile, name string) *dns.Msg {
		m := &dns.Msg{Ns: h.soa()}
		m.Rcode = dns.RcodeNameError
		m.Ns = append(m.Ns, h.sign(h.pen, record(fmt.Sprintf("%s 300 IN NSEC %s NS SOA RRSIG NSEC DNSKEY", h.name, next)))...)
		return m
	}
}

// onlyNSEC3 does so by one record of the apex, whose hash is the only one.
func onlyNSEC3(iterations int, flags uint8) func(h *hostile, name string) *dns.Msg {
	return func(h *hostile, name string) *dns.Msg {
		m := &dns.Msg{Ns: h.soa()}
		m.Rcode = dns.RcodeNameError
		hash := dns.HashName(h.name, dns.SHA1, uint16(iterations), "")
		m.Ns = append(m.Ns, h.sign(h.pen, &dns.NSEC3{
			Hdr: dns.RR_Header{Name: strings.ToLower(hash) + "." + h.name, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: 300}, Hash: dns.SHA1, Flags: flags,
			Iterations: uint16(iterations), HashLength: 20, NextDomain: hash, TypeBitMap: []uint16{dns.TypeNS, dns.TypeSOA, dns.TypeRRSIG, dns.TypeDNSKEY, dns.TypeNSEC3PARAM},
		})...)
		return m
	}
}

// aliases is chains of aliases through a zone that is not signed (R37), and DS records at and above cuts (R38).
func (l *statesLab) aliases() {
	alias := func(to string) func(h *hostile, name string) *dns.Msg {
		return func(h *hostile, name string) *dns.Msg {
			return &dns.Msg{Answer: h.sign(h.pen, record(name+" 300 IN CNAME "+to))}
		}
	}
	h := l.add("plain", unsignedOnly, dns.ECDSAP256SHA256, 256) // insecure, then secure
	h.ds, h.sign, h.reply = nil, func(_ *pen, set ...dns.RR) []dns.RR { return set }, alias("www.good.")
	l.add("round", unsignedOnly, dns.ECDSAP256SHA256, 256).reply = alias("www.plain.")
	l.add("into-good", secureOnly, dns.ECDSAP256SHA256, 256).reply = alias("www.good.")
	l.add("into-bogus", "SERVFAIL 0 10", dns.ECDSAP256SHA256, 256).reply = alias("www.unsigned.")
	l.ask("good.", dns.TypeDS, secureOnly)
	l.ask("plain.", dns.TypeDS, secureOnly)
	l.ask(".", dns.TypeDNSKEY, secureOnly)
	l.ask("good.", dns.TypeDNSKEY, secureOnly)
}

// sentinels asks which keys are believed (RFC 8509, R46).
func (l *statesLab) sentinels(tag uint16) {
	other := tag + 1
	l.ask(fmt.Sprintf("root-key-sentinel-is-ta-%05d.good.", tag), dns.TypeA, secureOnly)
	l.ask(fmt.Sprintf("root-key-sentinel-not-ta-%05d.good.", tag), dns.TypeA, "SERVFAIL 0")
	l.ask(fmt.Sprintf("root-key-sentinel-is-ta-%05d.good.", other), dns.TypeA, "SERVFAIL 0")
	l.ask(fmt.Sprintf("root-key-sentinel-not-ta-%05d.good.", other), dns.TypeA, secureOnly)
	l.ask(fmt.Sprintf("root-key-sentinel-not-ta-%05d.plain.", tag), dns.TypeA, unsignedOnly)
}

// What a validator says of zones by each thing that decides it, above *recurse* and above *forward* (R26 to R30, R36 to R38, R40, R46).
// The tests with BIND's programs have more zones; this one takes no program but those of every Linux.
func TestStates(t *testing.T) {
	if !namespaced(t) {
		return
	}
	l := &statesLab{}
	l.algorithms(unsignedOnly + " 1")
	l.digests()
	l.times()
	l.faults()
	l.denials()
	l.aliases()
	// The root's key may sign for a zone below it no more where a server of that has answered, which a forwarder does not tell.
	var s *hosts
	byRoot := &statesLab{}
	byRoot.add("by-root", "SERVFAIL 0 6", dns.ECDSAP256SHA256, 256).sign = keysWell(func(_ *pen, set ...dns.RR) []dns.RR {
		return append(set, s.root.pen.sign(set, nil))
	})
	s = hosting(t, append(byRoot.zones, l.zones...))
	l.sentinels(s.root.key.KeyTag())
	below := serve(t, 5402, s.recurse(""))
	recursing := serve(t, 5401, s.validator("")+s.recurse(""))
	for what, ours := range map[string]string{
		"recurse": recursing, "forward": serve(t, 5403, s.validator("")+" forward . "+below),
	} {
		awaitGood(ours)
		l.check(t, what, ours)
	}
	byRoot.check(t, "recurse", recursing)
	old := &statesLab{}
	old.algorithms(secureOnly)
	ours := serve(t, 5404, s.validator("sha1 validate")+s.recurse(""))
	awaitGood(ours)
	old.check(t, "sha1 validate", ours)
}

// check asks for all.
func (l *statesLab) check(t *testing.T, what, ours string) {
	for _, q := range l.asked {
		if got, _ := said(t, ours, q.name, q.typ, nil); strings.TrimSuffix(got, " 29") != q.want {
			t.Errorf("%s: %s %s: %s, want %s", what, q.name, dns.Type(q.typ), got, q.want)
		}
	}
}

// A flood of names that do not exist costs one query where one record denies them all, and what is heard is the same; in a zone with
// opt-out each costs one, and so does it where the denial is bogus.
func TestFloodAfterTheFirst(t *testing.T) {
	if !namespaced(t) {
		return
	}
	l := &statesLab{}
	l.add("good", secureOnly, dns.ECDSAP256SHA256, 256)
	l.add("nsec", "", dns.ECDSAP256SHA256, 256).reply = onlyNSEC("nsec.")
	l.add("nsec3", "", dns.ECDSAP256SHA256, 256).reply = onlyNSEC3(0, 0)
	l.add("opt-out", "", dns.ECDSAP256SHA256, 256).reply = onlyNSEC3(0, 1)
	h := l.add("forged", "", dns.ECDSAP256SHA256, 256) // all is denied, but not by the zone
	h.reply, h.sign = onlyNSEC("forged."), keysWell(func(p *pen, set ...dns.RR) []dns.RR {
		sig := p.sign(set, nil)
		sig.Expiration--
		return append(set, sig)
	})
	s := hosting(t, l.zones)
	for what, ours := range map[string]string{
		"recurse": serve(t, 5401, s.validator("")+s.recurse("aggressive nsec3")), "cached": serve(t, 5402, " cache\n"+s.validator("")+s.recurse("aggressive nsec3\n max_ttl 1000")),
	} {
		awaitGood(ours)
		for zone, want := range map[string]string{"nsec.": "NXDOMAIN 1", "nsec3.": "NXDOMAIN 1", "opt-out.": "NXDOMAIN 0", "forged.": "SERVFAIL 0 6"} {
			made := want == "NXDOMAIN 1"
			if got, _ := said(t, ours, "first."+zone, dns.TypeA, nil); got != want {
				t.Errorf("%s: first.%s: %s, want %s", what, zone, got, want)
			}
			const flood = 300
			before := upstream(t)
			for i := range flood {
				name := fmt.Sprintf("r%d.%s%s", i*7919, strings.Repeat("x.", i%3), zone)
				got, _ := said(t, ours, name, []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT}[i%3], nil)
				if heard, ok := strings.CutSuffix(got, " 29"); heard != want || ok != made {
					t.Fatalf("%s: %s: %s, want %s", what, name, got, want)
				}
			}
			if n := upstream(t) - before; made && n > 0 || !made && n < flood/3 {
				t.Errorf("%s: %s: %v queries for %d names", what, zone, n, flood)
			}
		}
	}
}
