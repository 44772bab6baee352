package test

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

const updateSecret = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="

// updateKey is the key that peers have, too.
const updateKey = zonetest.KeyName + "."

const updateSeed = `$ORIGIN example.org.
$TTL 300
@ SOA ns1 hostmaster 10 7200 3600 1209600 60
@ NS ns1
@ NS ns2
ns1 A 127.0.0.1
ns2 A 127.0.0.1
ns3 A 127.0.0.1
www A 192.0.2.1
`

// dynamic starts a server with a zone that updateKey may change; more stands in its block, options in its directive.
func dynamic(t *testing.T, dir, more, options string) (addr string) {
	t.Helper()
	port := loopback.Port()
	corefile := dynamicCorefile(t, dir, port, more, options)
	start(t, corefile)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func dynamicCorefile(t *testing.T, dir string, port int, more, options string) string {
	t.Helper()
	seed := filepath.Join(dir, "db")
	if err := os.WriteFile(seed, []byte(updateSeed), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`example.org:%d {
		bind 127.0.0.1
		tsig {
			secret %s %s
			secret other. %s
		}
		%s
		dynupdate {
			file %s
			database %s
			allow %s * *
			max_records 100000
			log off
			%s
		}
	}`, port, updateKey, updateSecret, updateSecret, more, seed, filepath.Join(dir, "zone.db"), updateKey, options)
}

// sendUpdate sends a signed UPDATE, and checks the signature of the answer.
func sendUpdate(t testing.TB, network, addr string, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: 10 * time.Second, TsigSecret: map[string]string{updateKey: updateSecret}}
	m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
	reply, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Fatal(err)
	}
	if reply.IsTsig() == nil {
		t.Fatalf("the answer is not signed: %v", reply)
	}
	return reply
}

// transferred is a zone by a signed transfer, both SOA records among it.
func transferred(t testing.TB, addr, key string) (rrs []dns.RR) {
	t.Helper()
	m := new(dns.Msg).SetAxfr("example.org.")
	m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
	tr := dns.Transfer{TsigSecret: map[string]string{key: updateSecret}}
	envelopes, err := tr.In(m, addr)
	if err != nil {
		t.Fatal(err)
	}
	for e := range envelopes {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		rrs = append(rrs, e.RR...)
	}
	return rrs
}

// fetched is a zone by a signed transfer, one record a line, sorted; the SOA record's serial is returned beside.
func fetched(t testing.TB, addr, key string) (lines []string, serial uint32) {
	t.Helper()
	for _, rr := range transferred(t, addr, key) {
		if soa, ok := rr.(*dns.SOA); ok {
			serial = soa.Serial
			continue
		}
		lines = append(lines, strings.ToLower(strings.Join(strings.Fields(rr.String()), " ")))
	}
	slices.Sort(lines)
	return lines, serial
}

// randomUpdate is an UPDATE at a few names, so that records meet.
func randomUpdate(r *rand.Rand) *dns.Msg {
	names := []string{"a.example.org.", "example.org.", "b.example.org.", "x.a.example.org.", "*.example.org.", "www.example.org.", "A.example.ORG."}
	data := []string{"A 192.0.2.%d", "TXT t%d", "CNAME c%d.example.org.", "MX %d a.example.org.", "NS ns%d.example.org.", "PTR P%d.example.org.", "AAAA 2001:db8::%d"}
	record := func(classes ...uint16) dns.RR {
		name, datum := names[r.IntN(len(names))], data[r.IntN(len(data))]
		if name[0] == '*' && strings.HasPrefix(datum, "NS") {
			name = names[0] // named takes no delegations of wildcards
		}
		text := fmt.Sprintf("%s %d IN "+datum, name, 60*(1+r.IntN(2)), 1+r.IntN(3))
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		h := rr.Header()
		switch h.Class = classes[r.IntN(len(classes))]; h.Class {
		case dns.ClassANY:
			h.Ttl = 0
			if r.IntN(3) == 0 {
				h.Rrtype = dns.TypeANY
			}
			rr = &dns.ANY{Hdr: *h}
		case dns.ClassNONE:
			h.Ttl = 0
		}
		return rr
	}
	m := new(dns.Msg).SetUpdate("example.org.")
	for range r.IntN(3) {
		p := record(dns.ClassINET, dns.ClassANY, dns.ClassNONE)
		h := p.Header()
		if h.Ttl = 0; h.Class == dns.ClassNONE {
			if r.IntN(3) == 0 {
				h.Rrtype = dns.TypeANY
			}
			p = &dns.ANY{Hdr: *h}
		}
		m.Answer = append(m.Answer, p)
	}
	for range 1 + r.IntN(3) {
		m.Ns = append(m.Ns, record(dns.ClassINET, dns.ClassINET, dns.ClassANY, dns.ClassNONE))
	}
	return m
}

// withoutTTL is records without their TTLs.
func withoutTTL(lines []string) (bare []string) {
	for _, l := range lines {
		f := strings.Fields(l)
		bare = append(bare, strings.Join(append(f[:1:1], f[2:]...), " "))
	}
	slices.Sort(bare)
	return bare
}

// TestUpdateAsPeers sends the same random updates to this server and to others: their answers and their zones are the same.
func TestUpdateAsPeers(t *testing.T) {
	for _, name := range []string{"knotd", "named"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			seed := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(seed, []byte(updateSeed), 0o600); err != nil {
				t.Fatal(err)
			}
			peer, _ := zonetest.Serve(t, name, zonetest.Setup{Zone: "example.org", File: seed, Algorithm: "hmac-sha256", Secret: updateSecret, Update: true})
			zonetest.Await(t, peer, "example.org.", 10)
			ours := dynamic(t, dir, "transfer {\nto *\n}", "")
			r := rand.New(rand.NewPCG(1, 2))
			for i := range 400 {
				m := randomUpdate(r)
				a, b := sendUpdate(t, "tcp", ours, m.Copy()), sendUpdate(t, "tcp", peer, m.Copy())
				if a.Rcode != b.Rcode {
					t.Fatalf("update %d: %s, and %s by %s: %v", i, dns.RcodeToString[a.Rcode], dns.RcodeToString[b.Rcode], name, m)
				}
				if i%20 > 0 {
					continue
				}
				mine, _ := fetched(t, ours, updateKey)
				theirs, _ := fetched(t, peer, updateKey)
				if name == "knotd" { // which keeps the TTL of a record that is added again (RFC 2136 §3.4.2.2 takes the new one)
					mine, theirs = withoutTTL(mine), withoutTTL(theirs)
				}
				if !slices.Equal(mine, theirs) {
					t.Fatalf("update %d: %v\nours:\n%s\n%s:\n%s", i, m, strings.Join(mine, "\n"), name, strings.Join(theirs, "\n"))
				}
			}
		})
	}
}

// TestUpdateToPeers: other servers as secondaries of a zone that changes: they are notified, and have it as it is here.
func TestUpdateToPeers(t *testing.T) {
	for _, name := range zonetest.Servers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			port, peerPort := loopback.Port(), loopback.Port()
			more := fmt.Sprintf("transfer {\nto 127.0.0.1:%d\ntsig %s\n}", peerPort, updateKey)
			start(t, dynamicCorefile(t, dir, port, more, "notify_delay 10ms"))
			ours := fmt.Sprintf("127.0.0.1:%d", port)
			peer, _ := zonetest.Serve(t, name, zonetest.Setup{
				Zone: "example.org", File: filepath.Join(t.TempDir(), "db"), Primary: fmt.Sprint(port), Port: peerPort, Algorithm: "hmac-sha256", Secret: updateSecret,
			})
			zonetest.Await(t, peer, "example.org.", 10)
			r := rand.New(rand.NewPCG(3, 4))
			for range 200 {
				sendUpdate(t, "udp", ours, randomUpdate(r))
			}
			want, serial := fetched(t, ours, updateKey)
			zonetest.Await(t, peer, "example.org.", serial)
			if got, _ := fetched(t, peer, updateKey); !slices.Equal(got, want) {
				t.Errorf("%s has\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestUpdateTransports: updates are taken over UDP and TCP, and whoever asks next over either sees them.
func TestUpdateTransports(t *testing.T) {
	addr := dynamic(t, t.TempDir(), "cache\nminimal\nloadbalance\nprometheus 127.0.0.1:0\nmetadata", "")
	networks := []string{"udp", "tcp"}
	for i := range 100 {
		m := new(dns.Msg).SetUpdate("example.org.")
		rr, _ := dns.NewRR(fmt.Sprintf("new.example.org. 300 IN TXT n%d", i))
		m.RemoveRRset([]dns.RR{rr})
		m.Insert([]dns.RR{rr})
		if reply := sendUpdate(t, networks[i%2], addr, m); reply.Rcode != 0 {
			t.Fatal(reply)
		}
		for _, network := range networks {
			reply := ask(t, network, addr, question("new.example.org.", dns.TypeTXT))
			if reply == nil || len(reply.Answer) != 1 || reply.Answer[0].(*dns.TXT).Txt[0] != fmt.Sprintf("n%d", i) {
				t.Fatalf("%d over %s: %v", i, network, reply)
			}
		}
	}
	other := new(dns.Msg).SetUpdate("example.org.")
	other.SetTsig("other.", dns.HmacSHA256, 300, time.Now().Unix())
	c := dns.Client{TsigSecret: map[string]string{"other.": updateSecret}}
	if reply, _, err := c.Exchange(other, addr); err != nil || reply.Rcode != dns.RcodeRefused {
		t.Errorf("a key without rules: %v, %v", reply, err)
	}
}

// TestUpdateReload: a reload while updates come loses none, and a Corefile with lower limits is refused.
func TestUpdateReload(t *testing.T) {
	dir := t.TempDir()
	port := loopback.Port()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	i, _, _ := start(t, dynamicCorefile(t, dir, port, "transfer {\nto *\n}", ""))
	r := &running{instance: i}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { done <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			m := new(dns.Msg).SetUpdate("example.org.")
			rr, _ := dns.NewRR(fmt.Sprintf("u%d.example.org. 300 IN TXT n", n))
			m.Insert([]dns.RR{rr})
			if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != 0 {
				t.Error(reply)
				return
			}
			n++
		}
	}()
	for round := range 3 {
		time.Sleep(100 * time.Millisecond)
		next, err := r.instance.Restart(NewInput(dynamicCorefile(t, dir, port, "transfer {\nto *\n}", fmt.Sprintf("ttl 0 %d", 1000+round))))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
		time.Sleep(50 * time.Millisecond)
		if _, err := r.instance.Restart(NewInput(dynamicCorefile(t, dir, port, "", "max_bytes 10"))); err == nil {
			t.Fatal("lower limits than the zone needs are taken")
		}
	}
	close(stop)
	n := <-done
	t.Cleanup(r.end)
	lines, serial := fetched(t, addr, updateKey)
	if n == 0 || serial != 10+uint32(n) || len(lines) != 6+n {
		t.Errorf("%d updates were acknowledged, serial %d, %d records", n, serial, len(lines))
	}
}

// TestUpdateElsewhere: blocks without dynupdate on the same listener say NOTIMP.
func TestUpdateElsewhere(t *testing.T) {
	dir := t.TempDir()
	port := loopback.Port()
	start(t, dynamicCorefile(t, dir, port, "", "")+fmt.Sprintf("\nexample.net:%d {\nbind 127.0.0.1\nwhoami\n}", port))
	addr := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
	for zone, rcode := range map[string]int{"example.net.": dns.RcodeNotImplemented, "example.org.": dns.RcodeRefused} {
		if reply := ask(t, "udp", addr, new(dns.Msg).SetUpdate(zone)); reply == nil || reply.Rcode != rcode {
			t.Errorf("%s: %v", zone, reply)
		}
	}
}

// TestUpdateOverTLS: updates are taken over TLS, and a query over any transport sees them, also without a database.
func TestUpdateOverTLS(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprintf("database %v", kept), func(t *testing.T) { testUpdateOverTLS(t, kept) })
	}
}

func testUpdateOverTLS(t *testing.T, kept bool) {
	dir := t.TempDir()
	certificates(t, dir)
	port, tlsPort := loopback.Port(), loopback.Port()
	plain := dynamicCorefile(t, dir, port, "", "")
	if !kept {
		plain = strings.Replace(plain, "database "+filepath.Join(dir, "zone.db"), "", 1)
	}
	_, rest, _ := strings.Cut(plain, "{\n")
	start(t, fmt.Sprintf("example.org:%d tls://example.org:%d {\ntls %s/cert.pem %[3]s/key.pem\n", port, tlsPort, dir)+rest)
	m := insert(t, "new.example.org. 60 IN A 192.0.2.9")
	m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
	c := dns.Client{Net: "tcp-tls", TLSConfig: &tls.Config{InsecureSkipVerify: true}, Timeout: 5 * time.Second, TsigSecret: map[string]string{updateKey: updateSecret}}
	if reply, _, err := c.Exchange(m, fmt.Sprintf("127.0.0.1:%d", tlsPort)); err != nil || reply.Rcode != 0 || reply.IsTsig() == nil {
		t.Fatal(reply, err)
	}
	if reply := ask(t, "udp", fmt.Sprintf("127.0.0.1:%d", port), question("new.example.org.", dns.TypeA)); reply == nil || len(reply.Answer) != 1 {
		t.Errorf("over UDP: %v", reply)
	}
}

// TestUpdateInViews: an update is for the view that its sender is led to; where that has no dynupdate it is NOTIMP, also if
// another view has.
func TestUpdateInViews(t *testing.T) {
	dir := t.TempDir()
	port := loopback.Port()
	inside := dynamicCorefile(t, dir, port, "view inside {\nexpr client_ip() == '127.0.0.1'\n}", "")
	start(t, inside+fmt.Sprintf("\nexample.org:%d {\nbind 127.0.0.1\nfile %s\n}", port, filepath.Join(dir, "db")))
	for from, want := range map[string]int{"127.0.0.1": dns.RcodeSuccess, "127.0.0.2": dns.RcodeNotImplemented} {
		c := dns.Client{Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}, TsigSecret: map[string]string{updateKey: updateSecret}}
		m := insert(t, "new.example.org. 60 IN A 192.0.2.9")
		m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
		reply, _, _ := c.Exchange(m, fmt.Sprintf("127.0.0.1:%d", port)) // NOTIMP has no signature
		if reply == nil || reply.Rcode != want {
			t.Errorf("from %s: %v, want %s", from, reply, dns.RcodeToString[want])
		}
	}
}

// writeZoneKey writes a key of example.org into dir, and returns it and the name of its files.
func writeZoneKey(t testing.TB, dir string) (key *dns.DNSKEY, base string) {
	t.Helper()
	key = &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}, Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	base = filepath.Join(dir, fmt.Sprintf("Kexample.org.+013+%05d", key.KeyTag()))
	if err := os.WriteFile(base+".key", []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+".private", []byte(key.PrivateKeyString(private)), 0o600); err != nil {
		t.Fatal(err)
	}
	return key, base
}

// TestUpdateSigned: with dnssec above, what was changed is signed as it is now, and what is gone is denied.
func TestUpdateSigned(t *testing.T) {
	dir := t.TempDir()
	key, base := writeZoneKey(t, dir)
	addr := dynamic(t, dir, "cache\ndnssec {\nkey file "+base+"\n}", "")
	query := func() *dns.Msg {
		m := question("new.example.org.", dns.TypeTXT)
		m.SetEdns0(4096, true)
		return ask(t, "tcp", addr, m)
	}
	for i := range 5 {
		rr, _ := dns.NewRR(fmt.Sprintf("new.example.org. 300 IN TXT n%d", i))
		m := new(dns.Msg).SetUpdate("example.org.")
		m.RemoveRRset([]dns.RR{rr})
		m.Insert([]dns.RR{rr})
		if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != 0 {
			t.Fatal(reply)
		}
		reply := query()
		if reply == nil || len(reply.Answer) != 2 {
			t.Fatalf("%d: %v", i, reply)
		}
		sig, ok := reply.Answer[1].(*dns.RRSIG)
		if !ok || reply.Answer[0].(*dns.TXT).Txt[0] != fmt.Sprintf("n%d", i) {
			t.Fatalf("%d: %v", i, reply)
		}
		if err := sig.Verify(key, reply.Answer[:1]); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	m := new(dns.Msg).SetUpdate("example.org.")
	m.RemoveName([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: "new.example.org."}}})
	sendUpdate(t, "udp", addr, m)
	if reply := query(); reply == nil || len(reply.Answer) != 0 || len(reply.Ns) < 3 {
		t.Errorf("denied: %v", reply)
	}
}

// TestUpdateWithReverse: an update of addresses is seen in the reverse zone by the query that comes after it, whatever
// the transport, and goes to who transfers that zone.
func TestUpdateWithReverse(t *testing.T) {
	dir, reverse := t.TempDir(), t.TempDir()
	port := loopback.Port()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	const zone = "2.0.192.in-addr.arpa."
	seed := filepath.Join(reverse, "db")
	if err := os.WriteFile(seed, []byte("$TTL 300\n@ SOA ns1.example.org. a.example.org. 1 2 3 4 5\n@ NS ns1.example.org.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	follower := fmt.Sprintf("%s:%d {\nbind 127.0.0.1\ntransfer {\nto *\n}\ncache\ndynupdate {\nfile %s\ndatabase %s\nreverse_of example.org\n}\n}\n",
		zone, port, seed, filepath.Join(reverse, "zone.db"))
	start(t, follower+dynamicCorefile(t, dir, port, "cache", "")) // found though it stands behind
	names := func(host string) (found []string) {
		for _, network := range []string{"udp", "tcp"} {
			reply := ask(t, network, addr, question(host+"."+zone, dns.TypePTR))
			if reply == nil {
				t.Fatal("no reply")
			}
			for _, rr := range reply.Answer {
				found = append(found, rr.(*dns.PTR).Ptr)
			}
		}
		return found
	}
	if got := names("1"); !slices.Equal(got, []string{"www.example.org.", "www.example.org."}) {
		t.Fatalf("at the start: %v", got)
	}
	for i := range 20 {
		host := fmt.Sprintf("h%d.example.org.", i)
		if reply := sendUpdate(t, "udp", addr, insert(t, host+" 60 IN A 192.0.2.77")); reply.Rcode != 0 {
			t.Fatalf("%d: %v", i, reply)
		}
		if got := names("77"); !slices.Equal(got, []string{host, host}) {
			t.Fatalf("%d: %v", i, got)
		}
		rr, err := dns.NewRR(host + " 60 IN A 192.0.2.77")
		if err != nil {
			t.Fatal(err)
		}
		m := new(dns.Msg).SetUpdate("example.org.")
		m.Remove([]dns.RR{rr})
		if reply := sendUpdate(t, "tcp", addr, m); reply.Rcode != 0 {
			t.Fatalf("%d: %v", i, reply)
		}
		if got := names("77"); len(got) > 0 {
			t.Fatalf("%d: %v after it went", i, got)
		}
	}
	soa := ask(t, "udp", addr, question(zone, dns.TypeSOA))
	if serial := soa.Answer[0].(*dns.SOA).Serial; serial != 1+1+2*20 { // at the start, and each update
		t.Errorf("the serial is %d", serial)
	}
}
