package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// What does not exist where an alias leads is denied by the zone in which the name lies, by each only once, and at the
// cost of one inner question.
func TestAliasToNothing(t *testing.T) {
	dir := aliasWorld(t)
	for source, lines := range sources(t, dir) {
		t.Run(source, func(t *testing.T) {
			bothLanes(t, func(t *testing.T) {
				_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\n"+strings.ReplaceAll(lines, "FALL", "")+"\n}\ndyn.corp.test:0 {\nbind 127.0.0.1\nlanespy\nfile "+dir+"/db.dyn\n}")
				served(t, udp, "corp.test.")
				for name, tc := range map[string]struct {
					want  string
					asked int64 // how often a chain is gone through in the message lane
				}{
					"gone.corp.test.": {"NXDOMAIN aa | gone.corp.test. 300 CNAME gone.dyn.corp.test. | dyn.corp.test. 40 SOA", 2},
					"text.corp.test.": {"NOERROR aa | text.corp.test. 300 CNAME text.dyn.corp.test. | dyn.corp.test. 40 SOA", 2},
					"lost.corp.test.": {"NXDOMAIN aa | lost.corp.test. 300 CNAME missing.corp.test. | corp.test. 60 SOA", 2},
					"x.d.corp.test.":  {"NXDOMAIN aa | d.corp.test. 300 DNAME dyn.corp.test.; x.d.corp.test. 300 CNAME x.dyn.corp.test. | dyn.corp.test. 40 SOA", 2},
					"ping.corp.test.": {"NOERROR aa | ping.corp.test. 300 CNAME ping.dyn.corp.test.; ping.dyn.corp.test. 100 CNAME ping.corp.test. | corp.test. 300 NS ns.corp.test.", 2},
					"star.corp.test.": {"NOERROR aa | star.corp.test. 300 CNAME x.any.corp.test.; x.any.corp.test. 300 A 192.0.2.8 | corp.test. 300 NS ns.corp.test.", 2},
				} {
					before := asMessages.Load()
					if got := brief(ask(t, "udp", udp, question(name, dns.TypeA))); got != tc.want {
						t.Errorf("%s: %s\nwant %s", name, got, tc.want)
					}
					if n := asMessages.Load() - before; n > tc.asked {
						t.Errorf("%s: %d questions in the message lane, want %d at most", name, n, tc.asked)
					}
				}
			})
		})
	}
}

// An alias may lead to another one that is answered elsewhere, such as one made from a wildcard. If that leads to a zone cut,
// the reply ends with the referral, as it does where the first alias leads there; if it leads through a DNAME that the
// first one was made by, that stands in the answer once.
func TestAliasesElsewhere(t *testing.T) {
	dir := t.TempDir()
	text := corpZone + "cut IN NS ns.cut\nns.cut IN A 192.0.2.9\n*.way IN CNAME www.cut\nfar IN CNAME x.way\nnear IN CNAME www.cut\nlast IN CNAME x.out\n*.out IN CNAME www.example.\nend IN DNAME corp.test.\n*.turn IN CNAME host.end\n"
	if err := os.WriteFile(dir+"/db.corp", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bothLanes(t, func(t *testing.T) {
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nfile "+dir+"/db.corp corp.test\n}")
		for name, tc := range map[string]struct {
			want string
			glue int
		}{
			"near.corp.test.": {"NOERROR aa | near.corp.test. 300 CNAME www.cut.corp.test. | cut.corp.test. 300 NS ns.cut.corp.test.", 1},
			"far.corp.test.":  {"NOERROR aa | far.corp.test. 300 CNAME x.way.corp.test.; x.way.corp.test. 300 CNAME www.cut.corp.test. | cut.corp.test. 300 NS ns.cut.corp.test.", 1},
			"last.corp.test.": {"NOERROR aa | last.corp.test. 300 CNAME x.out.corp.test.; x.out.corp.test. 300 CNAME www.example. | corp.test. 300 NS ns.corp.test.", 0},
			"x.turn.end.corp.test.": {"NOERROR aa | end.corp.test. 300 DNAME corp.test.; host.corp.test. 300 A 192.0.2.7; host.end.corp.test. 300 CNAME host.corp.test.; " +
				"x.turn.corp.test. 300 CNAME host.end.corp.test.; x.turn.end.corp.test. 300 CNAME x.turn.corp.test. | corp.test. 300 NS ns.corp.test.", 0},
		} {
			m := ask(t, "udp", udp, question(name, dns.TypeA))
			if got := brief(m); got != tc.want || len(m.Extra) != tc.glue {
				t.Errorf("%s: %s, %d additional records\nwant %s, %d", name, got, len(m.Extra), tc.want, tc.glue)
			}
		}
	})
}

// Aliases that lead from zone to zone and never end are given up.
func TestAliasesWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		text := fmt.Sprintf("$TTL 60\n@ IN SOA ns hostmaster 1 7200 3600 1209600 60\n@ IN NS ns\n@ IN DNAME x.z%d.test.\n", 1-i)
		if err := os.WriteFile(fmt.Sprintf("%s/db.%d", dir, i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bothLanes(t, func(t *testing.T) {
		_, udp, _ := start(t, fmt.Sprintf(".:0 {\nbind 127.0.0.1\nlanespy\nfile %[1]s/db.0 z0.test\nfile %[1]s/db.1 z1.test\n}", dir))
		before := asMessages.Load()
		m := ask(t, "udp", udp, question("a.z0.test.", dns.TypeA))
		if m == nil || m.Rcode != dns.RcodeServerFailure || len(m.Answer) < 4 {
			t.Errorf("got %v", m)
		}
		if n := asMessages.Load() - before; n < 5 || n > 12 {
			t.Errorf("%d questions", n)
		}
	})
}

// signedCorp is corpZone, signed as far as shapes go.
const signedCorp = `$ORIGIN corp.test.
$TTL 300
@	IN SOA ns hostmaster 1 7200 3600 1209600 60
@	IN RRSIG SOA 13 2 300 20450101000000 20200101000000 1 corp.test. c29h
@	IN NS ns
@	IN RRSIG NS 13 2 300 20450101000000 20200101000000 1 corp.test. bnM=
@	IN NSEC *.any NS SOA RRSIG NSEC
@	IN RRSIG NSEC 13 2 300 20450101000000 20200101000000 1 corp.test. YXBleA==
*.any	IN A 192.0.2.8
*.any	IN RRSIG A 13 3 300 20450101000000 20200101000000 1 corp.test. YW55
*.any	IN NSEC app A RRSIG NSEC
*.any	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. YW5u
app	IN CNAME app.dyn
app	IN RRSIG CNAME 13 3 300 20450101000000 20200101000000 1 corp.test. YXBw
app	IN NSEC lost CNAME RRSIG NSEC
app	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. YXBu
lost	IN CNAME missing
lost	IN RRSIG CNAME 13 3 300 20450101000000 20200101000000 1 corp.test. bG9z
lost	IN NSEC ns CNAME RRSIG NSEC
lost	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. bG9u
ns	IN A 192.0.2.1
ns	IN NSEC star A RRSIG NSEC
ns	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. bnNu
star	IN CNAME x.any
star	IN RRSIG CNAME 13 3 300 20450101000000 20200101000000 1 corp.test. c3Rh
star	IN NSEC *.wild CNAME RRSIG NSEC
star	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. c3Ru
*.wild	IN CNAME app.dyn
*.wild	IN RRSIG CNAME 13 3 300 20450101000000 20200101000000 1 corp.test. d2ls
*.wild	IN NSEC @ CNAME RRSIG NSEC
*.wild	IN RRSIG NSEC 13 3 300 20450101000000 20200101000000 1 corp.test. d2lu
`

// owners is a section as "owner/TYPE", signatures as "owner/RRSIG(TYPE)", sorted.
func owners(rrs []dns.RR) string {
	var all []string
	for _, rr := range rrs {
		typ := dns.TypeToString[rr.Header().Rrtype]
		if sig, ok := rr.(*dns.RRSIG); ok {
			typ = "RRSIG(" + dns.TypeToString[sig.TypeCovered] + ")"
		}
		all = append(all, strings.TrimSuffix(rr.Header().Name, "corp.test.")+"/"+typ)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A zone that was signed before proves what it denies itself, and that nothing closer than its wildcards was passed
// over; for what is answered elsewhere it proves nothing.
func TestAliasOfSignedZone(t *testing.T) {
	dir := aliasWorld(t)
	if err := os.WriteFile(filepath.Join(dir, "db.signed"), []byte(signedCorp), 0o600); err != nil {
		t.Fatal(err)
	}
	bothLanes(t, func(t *testing.T) {
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nfile "+dir+"/db.signed corp.test\nfile "+dir+"/db.dyn dyn.corp.test\n}")
		for name, want := range map[string]struct{ answer, authority string }{
			"app.":    {"app./CNAME app./RRSIG(CNAME) app.dyn./A", "/NS /RRSIG(NS)"},
			"lost.":   {"lost./CNAME lost./RRSIG(CNAME)", "/NSEC /RRSIG(NSEC) /RRSIG(SOA) /SOA lost./NSEC lost./RRSIG(NSEC)"},
			"star.":   {"star./CNAME star./RRSIG(CNAME) x.any./A x.any./RRSIG(A)", "*.any./NSEC *.any./RRSIG(NSEC) /NS /RRSIG(NS)"},
			"x.wild.": {"app.dyn./A x.wild./CNAME x.wild./RRSIG(CNAME)", "*.wild./NSEC *.wild./RRSIG(NSEC) /NS /RRSIG(NS)"},
		} {
			m := ask(t, "udp", udp, question(name+"corp.test.", dns.TypeA).SetEdns0(4096, true))
			if m == nil || owners(m.Answer) != want.answer || owners(m.Ns) != want.authority {
				t.Errorf("%s: %v", name, m)
			}
		}
	})
}

// What the dnssec plugin signs is signed whole: aliases, what they lead to, and denials, once each.
func TestAliasSignedOnline(t *testing.T) {
	dir := aliasWorld(t)
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "corp.test.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	for ext, text := range map[string]string{".key": key.String(), ".private": key.PrivateKeyString(private)} {
		if err := os.WriteFile(dir+"/k"+ext, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\ndnssec corp.test {\nkey file "+dir+"/k\n}\nfile "+dir+"/db.corp corp.test\nfile "+dir+"/db.dyn dyn.corp.test\n}")
	for _, name := range []string{"app.", "x.wild.", "app.d.", "gone.", "text.", "lost.", "star."} {
		m := ask(t, "udp", udp, question(name+"corp.test.", dns.TypeA).SetEdns0(4096, true))
		if m == nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0 {
			t.Errorf("%s: %v", name, m)
			continue
		}
		for _, section := range [][]dns.RR{m.Answer, m.Ns} {
			allSigned(t, name, section, key)
		}
		denied := slices.Contains([]string{"gone.", "text.", "lost."}, name)
		if nsec := strings.Contains(owners(m.Ns), "/NSEC"); nsec != denied {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// allSigned looks for the one signature of each RRset of a section.
func allSigned(t *testing.T, name string, section []dns.RR, key *dns.DNSKEY) {
	t.Helper()
	sets := map[string][]dns.RR{}
	for _, rr := range section {
		if rr.Header().Rrtype != dns.TypeRRSIG {
			k := rr.Header().Name + dns.TypeToString[rr.Header().Rrtype]
			sets[k] = append(sets[k], rr)
		}
	}
	for k, set := range sets {
		n := 0
		for _, rr := range section {
			sig, ok := rr.(*dns.RRSIG)
			if ok && sig.Hdr.Name+dns.TypeToString[sig.TypeCovered] == k {
				n++
				if err := sig.Verify(key, set); err != nil || !sig.ValidityPeriod(time.Now()) {
					t.Errorf("%s: %v: %v", name, sig, err)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s: %d signatures of %s in\n%v", name, n, k, section)
		}
	}
}
