package lab

import (
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// signedRoot is the lab's root zone, signed, with a ZONEMD record (RFC 8976), and the DS record of its key.
func signedRoot(t *testing.T, l *Lab) (rrs []dns.RR, ds string) {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	p := dns.NewZoneParser(strings.NewReader(l.zones["127.9.0.1 ."].String()), ".", "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		rrs = append(rrs, rr)
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	digest := &dns.ZONEMD{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeZONEMD, Class: dns.ClassINET, Ttl: 300}, Serial: 1, Scheme: 1, Hash: 1, Digest: strings.Repeat("00", 48)}
	rrs = append(chain(rrs, digest, key), digest, key)
	rrs = append(rrs, signatures(t, rrs, key, private.(crypto.Signer), func(h *dns.RR_Header) bool { return h.Rrtype != dns.TypeZONEMD })...)
	b := zone.NewBuilder([]byte{0}, func(string, ...any) {})
	for _, rr := range rrs {
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := z.Digest(zone.DigestSimple, zone.DigestSHA384)
	if err != nil {
		t.Fatal(err)
	}
	digest.Digest = fmt.Sprintf("%x", sum)
	rrs = append(rrs, signatures(t, rrs, key, private.(crypto.Signer), func(h *dns.RR_Header) bool { return h.Rrtype == dns.TypeZONEMD })...)
	return rrs, key.ToDS(dns.SHA256).String()
}

// chain is records with the NSEC records of a zone whose apex has others, too. All names but the apex are top-level
// domains, or glue below them.
func chain(rrs []dns.RR, others ...dns.RR) []dns.RR {
	types := map[string][]uint16{}
	for _, rr := range append(slices.Clone(rrs), others...) {
		if h := rr.Header(); dns.CountLabel(h.Name) < 2 && !slices.Contains(types[h.Name], h.Rrtype) {
			types[h.Name] = append(types[h.Name], h.Rrtype)
		}
	}
	var names []string
	for name, all := range types {
		names = append(names, name)
		types[name] = append(all, dns.TypeRRSIG, dns.TypeNSEC)
		slices.Sort(types[name])
	}
	slices.Sort(names)
	for i, name := range names {
		rrs = append(rrs, &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: 300}, NextDomain: names[(i+1)%len(names)], TypeBitMap: types[name]})
	}
	return rrs
}

// signatures signs the RRsets that are the root's own, and that which says so.
func signatures(t *testing.T, rrs []dns.RR, key *dns.DNSKEY, private crypto.Signer, which func(*dns.RR_Header) bool) (sigs []dns.RR) {
	t.Helper()
	sets := map[string][]dns.RR{}
	for _, rr := range rrs {
		if h := rr.Header(); which(h) && h.Rrtype != dns.TypeRRSIG && (h.Name == "." || h.Rrtype == dns.TypeNSEC) {
			k := fmt.Sprint(h.Name, h.Rrtype)
			sets[k] = append(sets[k], rr)
		}
	}
	now := time.Now().Unix()
	for _, set := range sets {
		sig := &dns.RRSIG{
			Hdr: dns.RR_Header{Ttl: set[0].Header().Ttl}, Algorithm: key.Algorithm, KeyTag: key.KeyTag(), SignerName: ".",
			Inception: uint32(now - 86400), Expiration: uint32(now + 86400),
		}
		if err := sig.Sign(private, set); err != nil {
			t.Fatal(err)
		}
		sigs = append(sigs, sig)
	}
	return sigs
}

func zoneText(rrs []dns.RR, left func(dns.RR) bool) string {
	var b strings.Builder
	for _, rr := range rrs {
		if left == nil || !left(rr) {
			fmt.Fprintln(&b, rr)
		}
	}
	return b.String()
}

// startWithRoot starts the laboratory with another root zone. The test is skipped where its addresses are taken.
func startWithRoot(t *testing.T, l *Lab, rrs []dns.RR) {
	t.Helper()
	l.corefile.Reset()
	l.zones["127.9.0.1 ."].Reset()
	l.zones["127.9.0.1 ."].WriteString(zoneText(rrs, nil))
	if err := l.write(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	if err := l.Start(); err != nil {
		t.Skipf("the addresses 127.9.0.0/16 cannot be listened on: %v", err)
	}
}

// A copy of the root zone answers in place of the root's servers, if it is the root's own and not too old (RFC 8806,
// 8976); else they are asked, and nothing fails (R3).
func TestLocalRoot(t *testing.T) {
	l, err := Build(t.TempDir(), loopback.Port(), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	rrs, ds := signedRoot(t, l)
	if err := os.WriteFile(filepath.Join(l.Dir, "zone.root"), []byte(zoneText(rrs, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	startWithRoot(t, l, rrs) // the root's servers have the signed zone, too
	isZONEMD := func(rr dns.RR) bool {
		sig, ok := rr.(*dns.RRSIG)
		return rr.Header().Rrtype == dns.TypeZONEMD || ok && sig.TypeCovered == dns.TypeZONEMD
	}
	whole := zoneText(rrs, nil)
	validator := fmt.Sprintf(" validator {\n  anchor %q\n  signal off\n }\n", strings.ReplaceAll(ds, "\t", " "))
	for what, c := range map[string]struct {
		zone, validator string
		old             time.Duration
		used            bool
	}{
		"good":                           {whole, validator, 0, true},
		"good, nobody validates":         {whole, "", 0, true},
		"one address changed":            {strings.Replace(whole, "127.9.1.2", "127.9.1.3", 1), validator, 0, false},
		"one address changed, unchecked": {strings.Replace(whole, "127.9.1.2", "127.9.1.3", 1), "", 0, false},
		"digest lost":                    {zoneText(rrs, isZONEMD), validator, 0, false},
		"digest lost, nobody validates":  {zoneText(rrs, isZONEMD), "", 0, false},
		"digest not signed": {zoneText(rrs, func(rr dns.RR) bool {
			return isZONEMD(rr) && rr.Header().Rrtype == dns.TypeRRSIG
		}), validator, 0, false},
		"expired": {whole, validator, 86401 * time.Second, false},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "root")
			if err := os.WriteFile(file, []byte(c.zone), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-c.old)
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
			log := logtest.Capture(t)
			for _, servers := range []bool{true, false} { // of the root answer
				ours := l.localRoot(t, c.validator, file, servers)
				log.Await(t, "Local root zone: ") // it is taken, or refused
				log.Take()
				a, err := Ask(ours, "www.z0.t1.", dns.TypeA)
				if err != nil {
					t.Fatal(err)
				}
				if want := c.used || servers; want != (a.Rcode == 0 && a.Addr == "192.0.2.4") {
					t.Errorf("servers %v: %v, want an answer %v", servers, a, want)
				}
				if !c.used && !servers {
					continue
				}
				said, _ := said(t, ours, "no.such.", dns.TypeA, nil)
				want := "NXDOMAIN 0"
				if c.validator != "" {
					want = "NXDOMAIN 1"
				}
				if said != want {
					t.Errorf("servers %v: a domain that does not exist: %s, want %s", servers, said, want)
				}
			}
		})
	}
}

// localRoot is a resolver with a copy of the root zone. If the root's servers do not answer it has hints that lead
// nowhere.
func (l *Lab) localRoot(t *testing.T, validator, file string, servers bool) string {
	t.Helper()
	hints := filepath.Join(t.TempDir(), "hints")
	text := ". 86400 IN NS a.root.lab.\na.root.lab. 86400 IN A 127.9.0.1\n"
	if !servers {
		text = strings.Replace(text, "127.9.0.1", "127.9.255.9", 1)
	}
	if err := os.WriteFile(hints, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i, udp, _, err := test.CoreDNSServerAndPorts(fmt.Sprintf(
		".:0 {\n bind 127.0.0.1\n%s recurse {\n  hints %s\n  local_root file %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  family ipv4\n  timeout 2s\n }\n}\n",
		validator, hints, file, l.Port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	return udp
}
