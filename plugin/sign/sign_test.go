package sign

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

const zoneText = `$ORIGIN example.org.
$TTL 600
@ IN SOA ns hostmaster 1 7200 3600 1209600 300
@ IN NS ns
@ IN DNSKEY 257 3 13 qMbcWCDMg5nOT+ZW5jik2KLa8cjzfhW4YFCPH+0HDtsglQ8ps3Wcy1bX 3ub+EfxMplHI1QQnTTUowxYREv3ktQ==
@ IN MX 10 Mail
ns IN A 192.0.2.1
mail IN A 192.0.2.2
mail IN AAAA 2001:db8::2
www IN CNAME mail
*.w IN TXT "star"
a.b.ent IN TXT "deep"
plain IN NS ns.plain
ns.plain IN A 192.0.2.9
x.y.plain IN A 192.0.2.9
safe IN NS safe
safe IN A 192.0.2.10
safe IN DS 1 13 2 3333333333333333333333333333333333333333333333333333333333333333
old IN DNAME new
below.old IN A 192.0.2.7
svc IN HTTPS 1 . alpn=h2
odd\.dot IN TYPE65300 \# 2 0a0b
`

// keysIn writes a key pair of the zone into a folder and returns its base name.
func keysIn(t testing.TB, dir, zone string, algorithm uint8, bits int, flags uint16) string {
	t.Helper()
	k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: flags, Protocol: 3, Algorithm: algorithm}
	private, err := k.Generate(bits)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, fmt.Sprintf("K%s+%03d+%05d", zone, algorithm, k.KeyTag()))
	put(t, base+".key", k.String()+"\n")
	put(t, base+".private", k.PrivateKeyString(private))
	return base
}

func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// signer is a Signer of the zone above with one new key for each algorithm.
func signer(t testing.TB, algorithms ...uint8) *Signer {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "db.example.org"), zoneText)
	if len(algorithms) == 0 {
		algorithms = []uint8{dns.ECDSAP256SHA256}
	}
	var keys []zonekeys.Pair
	for _, a := range algorithms {
		bits := map[uint8]int{dns.ECDSAP256SHA256: 256, dns.ECDSAP384SHA384: 384, dns.ED25519: 256, dns.RSASHA256: 2048}[a]
		pair, err := zonekeys.Read(keysIn(t, dir, "example.org.", a, bits, 257))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, pair)
	}
	return newSigner("example.org.", filepath.Join(dir, "db.example.org"), dir, keys)
}

// records is the records of a signed zone by owner and type.
func records(t testing.TB, s *Signer, now time.Time) map[string][]dns.RR {
	t.Helper()
	z, err := s.Sign(now)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]dns.RR{}
	walk := z.Current().Walk()
	for rec, ok := walk.Next(); ok; rec, ok = walk.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		key := rr.Header().Name + " " + dns.Type(rec.Type).String()
		if sig, ok := rr.(*dns.RRSIG); ok {
			key = sig.Hdr.Name + " " + dns.Type(sig.TypeCovered).String() + " RRSIG"
		}
		all[key] = append(all[key], rr)
	}
	return all
}

func TestSigns(t *testing.T) {
	for _, algorithms := range [][]uint8{{dns.ECDSAP256SHA256}, {dns.ED25519}, {dns.RSASHA256}, {dns.ECDSAP384SHA384, dns.ED25519}} {
		for _, nsec3 := range []bool{false, true} {
			s := signer(t, algorithms...)
			s.nsec3 = nsec3
			now := time.Now()
			all := records(t, s, now)
			if soa := all["example.org. SOA"][0].(*dns.SOA); soa.Serial != uint32(now.Unix()) {
				t.Errorf("serial %d", soa.Serial)
			}
			for key, set := range all {
				if strings.HasSuffix(key, " RRSIG") {
					continue
				}
				owner, typ, _ := strings.Cut(key, " ")
				sigs := all[key+" RRSIG"]
				below := strings.HasSuffix(owner, ".plain.example.org.") || strings.HasSuffix(owner, ".old.example.org.")
				cut := (owner == "plain.example.org." || owner == "safe.example.org.") && typ != "DS" && typ != "NSEC"
				if below || cut {
					if len(sigs) > 0 {
						t.Errorf("%s is signed", key)
					}
					continue
				}
				if len(sigs) != len(algorithms) {
					t.Errorf("%s has %d signatures", key, len(sigs))
				}
				for _, rr := range sigs {
					sig := rr.(*dns.RRSIG)
					i := slices.IndexFunc(s.keys, func(k zonekeys.Pair) bool { return k.KeyTag == sig.KeyTag })
					if err := sig.Verify(s.keys[i].Public, set); err != nil {
						t.Errorf("%s: %v", key, err)
					}
					if from, to := at(sig.Inception, now), at(sig.Expiration, now); now.Sub(from) < 3*time.Hour || now.Sub(from) > 21*time.Hour+time.Minute ||
						to.Sub(now) < 32*24*time.Hour-time.Minute || to.Sub(now) > 37*24*time.Hour {
						t.Errorf("%s counts from %v to %v", key, from, to)
					}
				}
			}
			if n := len(all["example.org. DNSKEY"]); n != len(algorithms) || len(all["example.org. CDS"]) != 2*n || len(all["example.org. CDNSKEY"]) != n {
				t.Errorf("%d keys for %d algorithms, CDS %v", n, len(algorithms), all["example.org. CDS"])
			}
		}
	}
}

// One AMTRELAY record that leaves discovery open, which miekg/dns does not read, kept the whole zone from being signed.
func TestSignsOpenRelay(t *testing.T) {
	s := signer(t)
	put(t, s.dbfile, zoneText+"relay IN AMTRELAY 10 1 3 Relay.example.net.\nrelay IN AMTRELAY 10 1 1 192.0.2.11\n")
	all := records(t, s, time.Now())
	set, sigs := all["relay.example.org. AMTRELAY"], all["relay.example.org. AMTRELAY RRSIG"]
	if len(set) != 2 || len(sigs) != 1 {
		t.Fatalf("got %v, %v", set, sigs)
	}
	if err := sigs[0].(*dns.RRSIG).Verify(s.keys[0].Public, set); err != nil {
		t.Error(err)
	}
}

func TestChain(t *testing.T) {
	s := signer(t)
	all := records(t, s, time.Now())
	for owner, want := range map[string]string{
		"example.org.":           "*.w ... NS SOA MX RRSIG NSEC DNSKEY CDS CDNSKEY",
		"plain.example.org.":     "NS RRSIG NSEC",
		"safe.example.org.":      "NS DS RRSIG NSEC",
		"old.example.org.":       "DNAME RRSIG NSEC",
		"mail.example.org.":      "A AAAA RRSIG NSEC",
		`odd\.dot.example.org.`:  "RRSIG NSEC TYPE65300",
		"a.b.ent.example.org.":   "TXT RRSIG NSEC",
		"b.ent.example.org.":     "",
		"ns.plain.example.org.":  "",
		"x.y.plain.example.org.": "",
		"below.old.example.org.": "",
	} {
		got := ""
		if set := all[owner+" NSEC"]; len(set) == 1 {
			for _, typ := range set[0].(*dns.NSEC).TypeBitMap {
				got += " " + dns.Type(typ).String()
			}
		}
		if _, types, ok := strings.Cut(want, "... "); ok {
			want = types
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %s, want %s", owner, got, want)
		}
	}
	// The chain leads through all of them, once, and back.
	name, n := "example.org.", 0
	for ; n == 0 || name != "example.org."; n++ {
		set := all[name+" NSEC"]
		if len(set) != 1 || n > 100 || set[0].Header().Ttl != 300 {
			t.Fatalf("at %s: %v", name, set)
		}
		name = set[0].(*dns.NSEC).NextDomain
	}
	if n != 11 {
		t.Errorf("%d names", n)
	}
}

// Independent tools take what is written, and do not take it when something was changed.
func TestVerified(t *testing.T) {
	for tool, args := range map[string][]string{"ldns-verify-zone": {"FILE"}, "dnssec-verify": {"-z", "-o", "example.org", "FILE"}} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Logf("%s is not there: apt-get install ldnsutils bind9-dnsutils", tool)
			continue
		}
		for what, set := range map[string]func(*Signer){"nsec": func(*Signer) {}, "nsec3": func(s *Signer) { s.nsec3 = true },
			"zonemd": func(s *Signer) { s.zonemd = true }, "nsec3 and zonemd": func(s *Signer) { s.nsec3, s.zonemd = true, true }} {
			for _, algorithm := range []uint8{dns.ECDSAP256SHA256, dns.ED25519} {
				s := signer(t, algorithm)
				set(s)
				now := time.Now()
				signed, err := s.sign(t.Context(), now)
				if err == nil {
					err = s.write(signed, now)
				}
				if err != nil {
					t.Fatal(err)
				}
				verify := func() ([]byte, error) {
					cmd := slices.Clone(args)
					cmd[len(cmd)-1] = s.signedFile()
					return exec.CommandContext(t.Context(), path, cmd...).CombinedOutput()
				}
				if out, err := verify(); err != nil {
					t.Errorf("%s, %s, algorithm %d: %v\n%s", tool, what, algorithm, err, out)
				}
				text, _ := os.ReadFile(s.signedFile())
				put(t, s.signedFile(), strings.Replace(string(text), "192.0.2.2", "192.0.2.3", 1))
				if out, err := verify(); err == nil {
					t.Errorf("%s, %s: nothing wrong with a changed zone: %s", tool, what, out)
				}
			}
		}
	}
}

func TestDigest(t *testing.T) {
	for _, nsec3 := range []bool{false, true} {
		s := signer(t)
		s.zonemd, s.nsec3 = true, nsec3
		z, err := s.sign(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := z.VerifyDigest(); err != nil {
			t.Error(err)
		}
		e := z.Edit(t.Logf)
		rr, _ := dns.NewRR("more.example.org. 60 IN A 192.0.2.1")
		e.AddRR(rr)
		if changed, _ := e.Build(); changed.VerifyDigest() != zone.ErrDigestMismatch {
			t.Error("the digest is that of another zone, too")
		}
	}
}

func TestDue(t *testing.T) {
	s := signer(t)
	now := time.Now().Truncate(time.Second)
	if why := s.due(now); !strings.Contains(why, "no such file") {
		t.Errorf("without a signed file: %q", why)
	}
	os.Chtimes(s.dbfile, now.Add(-time.Hour), now.Add(-time.Hour))
	signed, err := s.sign(t.Context(), now)
	if err == nil {
		err = s.write(signed, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	began := now.Add(-backdated - s.jitterInception)
	for _, tc := range []struct {
		at   time.Time
		want string
	}{
		{now, ""}, {began.Add(6*day - time.Minute), ""}, {began.Add(6*day + time.Minute), "more than 144h0m0s ago"}, {began.Add(-time.Minute), "in the future"},
	} {
		if why := s.due(tc.at); !strings.Contains(why, tc.want) || tc.want == "" && why != "" {
			t.Errorf("at %v: %q, want %q", tc.at, why, tc.want)
		}
	}
	sig := func(from, to time.Duration, tag uint16) facts {
		return facts{sigs: []*dns.RRSIG{{Inception: uint32(now.Add(from).Unix()), Expiration: uint32(now.Add(to).Unix()), KeyTag: tag}}}
	}
	tag := s.keys[0].KeyTag
	for want, f := range map[string]facts{"no SOA RRSIG": {}, "less than 168h0m0s": sig(-day, 7*day-time.Minute, tag), "keys": sig(-day, 8*day, tag+1)} {
		if why := s.judge(f, now); !strings.Contains(why, want) {
			t.Errorf("%v: %q, want %q", f, why, want)
		}
	}
	if why := s.judge(sig(-day, 8*day, tag), now); why != "" {
		t.Error(why)
	}
	s.nsec3 = true
	if why := s.due(now); !strings.Contains(why, "another way") {
		t.Errorf("nsec3: %q", why)
	}
	s.nsec3 = false
	os.Chtimes(s.dbfile, now.Add(time.Second), now.Add(time.Second))
	if why := s.due(now); !strings.Contains(why, "has changed") {
		t.Errorf("changed: %q", why)
	}
}

// The signers sign at the start what is due, and end when they are told.
func TestRun(t *testing.T) {
	one, two := signer(t), signer(t)
	two.dbfile += ".missing"
	s := &Sign{signers: []*Signer{one, two}}
	if err := s.OnStartup(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := os.Stat(one.signedFile()); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.OnShutdown(); err != nil {
		t.Fatal(err)
	}
	if why := one.due(time.Now()); why != "" {
		t.Error(why)
	}
	left, _ := filepath.Glob(filepath.Join(one.directory, unfinished))
	if _, err := os.Stat(two.signedFile()); err == nil || len(left) > 0 {
		t.Errorf("files left: %v, signed without a zone file: %v", left, err == nil)
	}
	before, _ := os.ReadFile(one.signedFile())
	one.refresh(t.Context(), time.Now())
	if after, _ := os.ReadFile(one.signedFile()); !bytes.Equal(before, after) {
		t.Error("signed again though it was not due")
	}
}

// What a process was writing when it was killed is removed by the next one, once it is certain that nobody writes it.
func TestUnfinished(t *testing.T) {
	s := signer(t)
	s.directory = t.TempDir()
	old := time.Now().Add(-time.Hour)
	for name, at := range map[string]time.Time{".signed-1.new": old, ".signed-2.new": time.Now(), "signed-of-mine": old} {
		path := filepath.Join(s.directory, name)
		put(t, path, "")
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.run(ctx)
	var left []string
	all, err := os.ReadDir(s.directory)
	for _, f := range all {
		left = append(left, f.Name())
	}
	if got := strings.Join(left, " "); err != nil || got != ".signed-2.new signed-of-mine" {
		t.Errorf("left are %s (%v)", got, err)
	}
}

// A file that takes the zone file's place is signed, also if it is older than what was signed before; one that is not
// there is not.
func TestFollow(t *testing.T) {
	s := signer(t)
	s.refresh(t.Context(), time.Now())
	put(t, s.dbfile, zoneText+"late A 192.0.2.77\n")
	older := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.dbfile, older, older); err != nil {
		t.Fatal(err)
	}
	s.follow(t.Context(), time.Now())
	if signed := signedNow(t, s); !strings.Contains(signed, "late.example.org.") {
		t.Error("it is not signed")
	}
	if err := os.Remove(s.dbfile); err != nil {
		t.Fatal(err)
	}
	before := signedNow(t, s)
	out := logtest.Capture(t)
	if s.follow(t.Context(), time.Now().Add(time.Second)); out.String() != "" {
		t.Errorf("a file that is not there is not just waited for: %s", out)
	}
	put(t, s.dbfile, zoneText+"last A 192.0.2.78\n")
	if again := s.follow(t.Context(), time.Now()); again <= 0 || again > stamp.Quiet || signedNow(t, s) != before {
		t.Errorf("a file that may still be written is signed, again in %v", again)
	}
	if again := s.follow(t.Context(), soon()); again != 0 || !strings.Contains(signedNow(t, s), "last.example.org.") {
		t.Errorf("the file that came back is not signed, again in %v", again)
	}
}

// soon is when what is written now is done.
func soon() time.Time { return time.Now().Add(2 * stamp.Quiet) }

func signedNow(t *testing.T, s *Signer) string {
	t.Helper()
	b, err := os.ReadFile(s.signedFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// So it is with a file that the zone file includes: while the server runs, after a start, and when it comes at last.
func TestFollowIncluded(t *testing.T) {
	s := signer(t)
	hosts := filepath.Join(filepath.Dir(s.dbfile), "hosts")
	put(t, s.dbfile, zoneText+"$INCLUDE hosts\n")
	s.refresh(t.Context(), time.Now())
	if _, err := os.Stat(s.signedFile()); err == nil {
		t.Fatal("signed without the included file")
	}
	put(t, hosts, "one A 192.0.2.1\n")
	s.follow(t.Context(), soon())
	if signed := signedNow(t, s); !strings.Contains(signed, "one.example.org.") {
		t.Error("it is not signed when the included file has come")
	}
	put(t, hosts, "one A 192.0.2.1\ntwo A 192.0.2.2\n")
	s.follow(t.Context(), soon())
	if signed := signedNow(t, s); !strings.Contains(signed, "two.example.org.") {
		t.Error("it is not signed when the included file was changed")
	}
	again := newSigner(s.origin, s.dbfile, s.directory, s.keys)
	if why := again.due(time.Now()); why != "" {
		t.Errorf("due after a start: %s", why)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(hosts, later, later); err != nil {
		t.Fatal(err)
	}
	again = newSigner(s.origin, s.dbfile, s.directory, s.keys)
	if why := again.due(time.Now()); !strings.Contains(why, `hosts" has changed`) {
		t.Errorf("not due after a start, though the included file is newer: %q", why)
	}
}

func TestParse(t *testing.T) {
	z, err := Parse(strings.NewReader(zoneText), "example.org.", "db.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if z.SOASerialIfDefined() != 1 || z.Current().Apex().Set(dns.TypeDNSKEY) != nil || z.Current().Apex().Set(dns.TypeMX) == nil {
		t.Error("not what is in the file")
	}
	for text, want := range map[string]string{"": "no SOA record", "@ IN SOA ns": "db.example.org", "www.example.org. 60 CH TXT x\n": `file "db.example.org", line 1: record www.example.org. of class CH, want IN`} {
		if _, err := Parse(strings.NewReader(text), "example.org.", "db.example.org"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// Whatever a signed file holds, looking at it ends with facts or an error, and never with facts of another zone.
func FuzzFacts(f *testing.F) {
	f.Add("example.org. 60 IN RRSIG SOA 13 2 60 20450101000000 20200101000000 1 example.org. AAAA\n")
	f.Add("www 60 IN RRSIG SOA 13 2 60 20450101000000 20200101000000 1 example.org. AAAA\n@ NSEC3PARAM 1 0 0 -\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToUpper(text), "$INCLUDE") {
			return
		}
		facts, err := factsOf(strings.NewReader(text), "example.org.", "db.example.org.signed")
		if err != nil {
			return
		}
		for _, sig := range facts.sigs {
			if sig.TypeCovered != dns.TypeSOA || dns.CanonicalName(sig.Hdr.Name) != "example.org." {
				t.Fatalf("%q: %v", text, sig)
			}
		}
	})
}

func BenchmarkSign(b *testing.B) {
	s := signer(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Sign(time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

// Signatures have the TTL of what they sign; those of the apex's NS records no more than the SOA record's. Proofs have the SOA record's minimum.
func TestTTLs(t *testing.T) {
	s := signer(t)
	put(t, s.dbfile, strings.Replace(zoneText, "@ IN SOA", "@ 200 IN SOA", 1))
	all := records(t, s, time.Now())
	for key, want := range map[string]uint32{"example.org. SOA": 200, "example.org. NS": 200, "example.org. DNSKEY": 200, "example.org. NSEC": 300, "example.org. MX": 600,
		"mail.example.org. A": 600, "plain.example.org. NSEC": 300} {
		sig := all[key+" RRSIG"][0].(*dns.RRSIG)
		if sig.OrigTtl != want || sig.Hdr.Ttl != want {
			t.Errorf("%s: got %d, want %d", key, sig.OrigTtl, want)
		}
	}
	if ttl := all["example.org. NS"][0].Header().Ttl; ttl != 600 {
		t.Errorf("TTL of NS records: %d", ttl)
	}
}

// What Sign returns has its apex in the fields where others look for it.
func TestSignedApex(t *testing.T) {
	s := signer(t, dns.ECDSAP256SHA256)
	now := time.Now()
	z, err := s.Sign(now)
	if err != nil {
		t.Fatal(err)
	}
	if z.SOA == nil || z.SOA.Serial != uint32(now.Unix()) || len(z.NS) == 0 || len(z.SIGSOA) != 1 || len(z.SIGNS) != 1 {
		t.Errorf("%+v", z.Apex)
	}
	if rrs, err := z.ApexIfDefined(); err != nil || len(rrs) != 3+len(z.NS) {
		t.Errorf("%v, %v", rrs, err)
	}
}
