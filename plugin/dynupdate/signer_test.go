package dynupdate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/tsig"

	"github.com/miekg/dns"
)

// leastLeft is how long a signature counts at least.
const leastLeft = 7 * 24 * time.Hour

// newKey writes a key of example.org into dir and returns the name of its files.
func newKey(t testing.TB, dir string, algorithm uint8) string {
	t.Helper()
	return newKeyOf(t, dir, "example.org.", algorithm)
}

func newKeyOf(t testing.TB, dir, zone string, algorithm uint8) string {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: algorithm}
	secret, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fmt.Sprintf("K%s+%03d+%05d", zone, algorithm, key.KeyTag()))
	for ext, text := range map[string]string{".key": key.String(), ".private": key.PrivateKeyString(secret)} {
		if err := os.WriteFile(name+ext, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// recordsOf is all records of a zone by owner and type.
func recordsOf(t testing.TB, z *zone.Zone) map[string]map[uint16][]dns.RR {
	t.Helper()
	all := map[string]map[uint16][]dns.RR{}
	w := z.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		h := rr.Header()
		if all[h.Name] == nil {
			all[h.Name] = map[uint16][]dns.RR{}
		}
		all[h.Name][h.Rrtype] = append(all[h.Name][h.Rrtype], rr)
	}
	return all
}

// hidden reports whether a name lies below a zone cut or a DNAME record.
func hidden(all map[string]map[uint16][]dns.RR, origin, name string) bool {
	for off, end := dns.NextLabel(name, 0); !end; off, end = dns.NextLabel(name, off) {
		up := name[off:]
		if sets := all[up]; sets[dns.TypeDNAME] != nil || up != origin && sets[dns.TypeNS] != nil {
			return true
		}
	}
	return false
}

// checkSigned looks at a signed zone from outside: as RFC 4035 §2 wants it, with the keys that it has, at a time.
func checkSigned(t testing.TB, z *zone.Zone, keys int, now time.Time) {
	t.Helper()
	all := recordsOf(t, z)
	origin := wire.Text(z.Origin())
	apex := all[origin]
	if len(apex[dns.TypeDNSKEY]) != keys || len(apex[dns.TypeCDS]) != 2*keys || len(apex[dns.TypeCDNSKEY]) != keys {
		t.Fatalf("%d DNSKEY, %d CDS, %d CDNSKEY records, of %d keys", len(apex[dns.TypeDNSKEY]), len(apex[dns.TypeCDS]), len(apex[dns.TypeCDNSKEY]), keys)
	}
	var chain []string
	for name, sets := range all {
		cut := name != origin && sets[dns.TypeNS] != nil
		isHidden := hidden(all, origin, name)
		signed := map[uint16]int{}
		for _, rr := range sets[dns.TypeRRSIG] {
			sig := rr.(*dns.RRSIG)
			signed[sig.TypeCovered]++
			k := slices.IndexFunc(apex[dns.TypeDNSKEY], func(k dns.RR) bool { return k.(*dns.DNSKEY).KeyTag() == sig.KeyTag })
			if k < 0 {
				t.Errorf("%v is by no key of the zone", sig)
			} else if err := sig.Verify(apex[dns.TypeDNSKEY][k].(*dns.DNSKEY), sets[sig.TypeCovered]); err != nil {
				t.Errorf("%v: %v", sig, err)
			}
			if !sig.ValidityPeriod(now) || !sig.ValidityPeriod(now.Add(leastLeft-time.Minute)) {
				t.Errorf("%v does not count for long enough", sig)
			}
		}
		for typ := range sets {
			want := keys
			if typ == dns.TypeRRSIG || isHidden || cut && typ != dns.TypeDS && typ != dns.TypeNSEC {
				want = 0
			}
			if signed[typ] != want {
				t.Errorf("%s %s has %d signatures, want %d", name, dns.TypeToString[typ], signed[typ], want)
			}
		}
		if apex[dns.TypeNSEC3PARAM] != nil {
			continue
		}
		if nsec := sets[dns.TypeNSEC]; (len(nsec) == 1) == isHidden {
			t.Errorf("%s has %d NSEC records", name, len(nsec))
		}
		if !isHidden {
			chain = append(chain, name)
		}
	}
	if apex[dns.TypeNSEC3PARAM] != nil {
		checkHashes(t, all)
		return
	}
	slices.SortFunc(chain, func(a, b string) int { // RFC 4034 §6.1
		al, bl := dns.SplitDomainName(a), dns.SplitDomainName(b)
		slices.Reverse(al)
		slices.Reverse(bl)
		return slices.Compare(al, bl)
	})
	for i, name := range chain {
		nsec := all[name][dns.TypeNSEC][0].(*dns.NSEC)
		if next := chain[(i+1)%len(chain)]; nsec.NextDomain != next {
			t.Errorf("behind %s is %s, want %s", name, nsec.NextDomain, next)
		}
		types := slices.Sorted(maps.Keys(all[name]))
		if name != origin && all[name][dns.TypeNS] != nil {
			types = slices.DeleteFunc(types, func(t uint16) bool {
				return !slices.Contains([]uint16{dns.TypeNS, dns.TypeDS, dns.TypeRRSIG, dns.TypeNSEC}, t)
			})
		}
		if !slices.Equal(nsec.TypeBitMap, types) {
			t.Errorf("the types of %s are %v, want %v", name, nsec.TypeBitMap, types)
		}
		if soa := apex[dns.TypeSOA][0].(*dns.SOA); nsec.Hdr.Ttl != min(soa.Hdr.Ttl, soa.Minttl) {
			t.Errorf("%v has not the TTL of denials", nsec)
		}
	}
}

// randomLines is changes at a few names, with cuts, aliases of whole trees, and empty non-terminals.
func randomLines(r *rand.Rand) []string {
	names := []string{"www", "x.ent", "y.ent", "ent", "sub", "ns.sub", "a.ns.sub", "*.wild", "new", "b.new", "c.b.new", "zz"}
	data := []string{"A 192.0.2.%d", "TXT t%d", "NS ns%d.example.org.", "DNAME d%d.example.net.", "MX %d mail.example.org.", "CNAME c%d.example.org."}
	var lines []string
	for range 1 + r.IntN(4) {
		name, datum := names[r.IntN(len(names))]+".example.org.", fmt.Sprintf(data[r.IntN(len(data))], r.IntN(3))
		switch r.IntN(5) {
		case 0:
			lines = append(lines, "up ANY "+name+" 0 ANY")
		case 1:
			lines = append(lines, "up ANY "+name+" 0 "+strings.Fields(datum)[0])
		default:
			lines = append(lines, fmt.Sprintf("up IN %s %d %s", name, 60+60*r.IntN(2), datum))
		}
	}
	return lines
}

// TestSigned: whatever is changed, the zone is signed as it should be, also when it is read from the database again;
// and secondaries that take the changes have the same zone.
func TestSigned(t *testing.T) {
	for _, kind := range []string{"", " nsec3"} {
		t.Run("denials"+kind, func(t *testing.T) { testSigned(t, kind) })
	}
}

func testSigned(t *testing.T, kind string) {
	dir := t.TempDir()
	key := newKey(t, dir, dns.ECDSAP256SHA256)
	options := "database " + filepath.Join(dir, "zone.db") + "\nallow key. * DS\njournal 1000\nsign key file " + key + kind
	b := newBed(t, dir, options)
	checkSigned(t, b.d.store.durable, 1, time.Now())
	r := rand.New(rand.NewPCG(1, 2))
	follower, changes := b.d.store.durable, 0
	for range 150 {
		reply := b.send(newUpdate(t, randomLines(r)...))
		if reply.Rcode != dns.RcodeSuccess {
			t.Fatal(dns.RcodeToString[reply.Rcode])
		}
		now := b.d.store.durable
		if now == follower {
			continue
		}
		changes++
		checkSigned(t, now, 1, time.Now())
		deltas := b.d.store.since(follower.Serial(), now)
		if len(deltas) != 1 {
			t.Fatalf("%d deltas", len(deltas))
		}
		c := follower.Change()
		if err := c.Apply(deltas[0]); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.FailNow()
		}
		follower = now
	}
	if changes < 50 {
		t.Fatalf("%d changes", changes)
	}
	want := text(t, b.d.store.durable)
	b.stop()
	again := newBed(t, dir, options)
	if got := text(t, again.d.store.durable); got != want {
		t.Errorf("read again the zone is\n%s\nwant\n%s", got, want)
	}
}

func text(t testing.TB, z *zone.Zone) string {
	t.Helper()
	var out strings.Builder
	if err := z.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestSignedAnew: other keys sign all anew, none unsign, and signatures that end soon are made anew, those alone.
func TestSignedAnew(t *testing.T) {
	dir := t.TempDir()
	db := "database " + filepath.Join(dir, "zone.db") + "\n"
	one, two := newKey(t, t.TempDir(), dns.ECDSAP256SHA256), newKey(t, t.TempDir(), dns.ED25519)
	plain := newBed(t, dir, db)
	want := strings.Join(strings.Fields(strings.SplitN(text(t, plain.d.store.durable), "\n", 2)[1]), " ")
	plain.stop()
	for _, step := range []struct {
		sign string
		keys int
	}{{"sign key file " + one, 1}, {"sign key file " + one + ".key " + two, 2}, {"sign key file " + one + " nsec3", 1}, {"sign key directory " + filepath.Dir(two), 1}} {
		b := newBed(t, dir, db+step.sign)
		checkSigned(t, b.d.store.durable, step.keys, time.Now())
		serial := b.d.store.durable.Serial()
		if err := b.d.store.renew(); err != nil || b.d.store.durable.Serial() != serial {
			t.Errorf("%s: what is signed was signed again: %v", step.sign, err)
		}
		before := recordsOf(t, b.d.store.durable)
		later := time.Now().Add(30*24*time.Hour - leastLeft + 60*time.Hour) // half of those that count for 30 to 35 days
		b.d.store.now = func() time.Time { return later }
		if err := b.d.store.renew(); err != nil {
			t.Fatal(err)
		}
		checkSigned(t, b.d.store.durable, step.keys, later)
		kept := 0
		for name, sets := range recordsOf(t, b.d.store.durable) {
			for _, sig := range sets[dns.TypeRRSIG] {
				if slices.ContainsFunc(before[name][dns.TypeRRSIG], func(was dns.RR) bool { return was.String() == sig.String() }) {
					kept++
				}
			}
		}
		if kept == 0 {
			t.Errorf("%s: all was signed anew, though some signatures count for longer", step.sign)
		}
		b.stop()
	}
	b := newBed(t, dir, db)
	if got := strings.Join(strings.Fields(strings.SplitN(text(t, b.d.store.durable), "\n", 2)[1]), " "); got != want {
		t.Errorf("without keys the zone is\n%s\nwant\n%s", got, want)
	}
}

// TestSignedPolicy: clients have nothing to say about the records of DNSSEC, and do not see them as data of a name.
func TestSignedPolicy(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, "allow key. * ANY\nsign key file "+newKey(t, dir, dns.ED25519))
	for _, tc := range []struct{ lines, rcode string }{
		{"up ANY www.example.org. 0 NSEC", "NOTIMP"},
		{"up IN example.org. 60 DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=", "NOTIMP"},
		{"up ANY example.org. 0 ANY", "NOERROR"},
		{"up ANY www.example.org. 0 ANY", "NOERROR"},
		{"pre NONE www.example.org. 0 ANY|up IN www.example.org. 60 A 192.0.2.1", "NOERROR"},
		{"pre NONE www.example.org. 0 ANY|up IN www.example.org. 60 A 192.0.2.1", "YXDOMAIN"},
		{"pre NONE ent.example.org. 0 ANY|up IN zz.example.org. 60 A 192.0.2.1", "NOERROR"},
		{"up IN example.org. 300 SOA ns1 hostmaster 1000 7200 3600 1209600 30", "NOERROR"},
		{"up IN example.org. 20 SOA ns1 hostmaster 1001 7200 3600 1209600 30", "NOERROR"},
	} {
		if reply := b.send(newUpdate(t, strings.Split(tc.lines, "|")...)); reply.Rcode != rcodeOf(tc.rcode) {
			t.Errorf("%s: %s, want %s", tc.lines, dns.RcodeToString[reply.Rcode], tc.rcode)
		}
		checkSigned(t, b.d.store.durable, 1, time.Now())
	}
}

// TestDeleteAllOfApex: what is the signer's is not removed to be made again.
func TestDeleteAllOfApex(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, "allow key. * ANY\nsign key file "+newKey(t, dir, dns.ED25519))
	before := len(recordsOf(t, b.d.store.durable)["example.org."][dns.TypeMX])
	res := b.d.change(&message{by: tsig.Signature{Key: "key.", MAC: "x"}, updates: records(newUpdate(t, "up ANY example.org. 0 ANY").Ns)}, func() {})
	if before != 1 || res.removed != 1 || res.added != 0 {
		t.Errorf("%d MX records, then +%d -%d", before, res.added, res.removed)
	}
	checkSigned(t, b.d.store.durable, 1, time.Now())
}

// TestSignedAtOnce: a zone of more names than are signed anew at once is signed as a whole, for part of it would be bogus.
func TestSignedAtOnce(t *testing.T) {
	dir := t.TempDir()
	seed := seedText
	for i := range 2 * renewMost {
		seed += fmt.Sprintf("h%d A 192.0.2.1\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, dir, "sign key file "+newKey(t, dir, dns.ECDSAP256SHA256))
	if serial := b.d.store.durable.Serial(); serial != 11 {
		t.Errorf("the serial is %d, want 11", serial)
	}
	checkSigned(t, b.d.store.durable, 1, time.Now())
}

// BenchmarkSignedUpdate is an update of a signed zone, which makes four signatures.
func BenchmarkSignedUpdate(b *testing.B) {
	dir := b.TempDir()
	bed := newBed(b, dir, "log off\nsign key file "+newKey(b, dir, dns.ECDSAP256SHA256))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		bed.send(newUpdate(b, fmt.Sprintf("up IN h%d.example.org. 60 A 192.0.2.1", i%1000), fmt.Sprintf("up ANY h%d.example.org. 0 A", (i+500)%1000)))
	}
}

// TestSameTag: a key that has the tag of the one before is another key all the same.
func TestSameTag(t *testing.T) {
	seen := map[string]string{}
	var one, two string
	for two == "" {
		key := newKey(t, t.TempDir(), dns.ECDSAP256SHA256)
		tag := filepath.Base(key)
		if one = seen[tag]; one != "" {
			two = key
		}
		seen[tag] = key
	}
	dir := t.TempDir()
	db := "database " + filepath.Join(dir, "zone.db") + "\n"
	newBed(t, dir, db+"sign key file "+one).stop()
	b := newBed(t, dir, db+"sign key file "+two)
	checkSigned(t, b.d.store.durable, 1, time.Now())
	if got := recordsOf(t, b.d.store.durable)["example.org."][dns.TypeDNSKEY][0].(*dns.DNSKEY).PublicKey; got != b.d.keyPairs[0].Public.PublicKey {
		t.Error("the zone has the key of before")
	}
}

// TestCaseOfTargets: the target of an HTTPS record that was hidden when the database was written anew is as it was when it is
// signed later, and all of that is read again.
func TestCaseOfTargets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	options := "database " + path + "\nallow key. * DS\nmax_update_records 2000\nsign key file " + newKey(t, dir, dns.ECDSAP256SHA256)
	b := newBed(t, dir, options)
	b.send(newUpdate(t, "up IN x.sub.example.org. 60 HTTPS 1 Svc.Example.ORG. alpn=h2", "up IN y.sub.example.org. 60 SVCB 1 Svc.Example.ORG. alpn=h2"))
	size := int64(0)
	for i := 0; ; i++ { // until it is written anew
		var lines []string
		for n := range 200 {
			lines = append(lines, fmt.Sprintf("up IN h%d.example.org. 60 TXT %s", n%50, strings.Repeat(fmt.Sprint(n+i, "."), 60)))
		}
		b.send(newUpdate(t, append([]string{"up ANY h1.example.org. 0 ANY"}, lines...)...))
		was := size
		if size = b.d.store.size.Load(); size < was {
			break
		}
		if i == 1000 {
			t.Fatalf("the database of %d octets is not written anew", size)
		}
	}
	b.send(newUpdate(t, "up ANY sub.example.org. 0 NS"))
	checkSigned(t, b.d.store.durable, 1, time.Now())
	want := b.text()
	b.stop()
	again := newBed(t, dir, options)
	checkSigned(t, again.d.store.durable, 1, time.Now())
	if got := again.text(); got != want || !strings.Contains(got, "HTTPS 1 Svc.Example.ORG.") {
		t.Errorf("read again: %v", difference(want, got))
	}
}
