package dynupdate

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// nextMAC makes each signature of these tests another one.
var nextMAC atomic.Int64

// TestPolicy: who may change what, and that nothing changes if one record may not be.
func TestPolicy(t *testing.T) {
	options := `
		allow Web.  www.example.org.  A AAAA
		allow any.  www.example.org.  ANY
		allow apex. @ TXT
		allow wild. *.wild.example.org. TXT
		allow_below below. ent.example.org TXT
		deny denied. secret.example.org. *
		deny_below denied. hidden.example.org. TXT
		allow denied. * *
		allow first. www.example.org. ANY
		deny first. www.example.org. TXT
		deny erase. * TXT
		deny erase. @ NS
		allow erase. * *
		allow ds. sub.example.org. DS
		allow star. * *
		deny a.dyn.example.org. * AAAA
		self *.dyn.example.org. A AAAA
		deny b.dyn.example.org. * A
		deny host.example.org. * A
		self host.example.org. TXT`
	for i, tc := range []struct{ key, up, rcode string }{
		{"web.", "up IN www.example.org. 60 A 192.0.2.9", "NOERROR"},
		{"WEB.", "up IN www.example.org. 60 AAAA ::1", "NOERROR"},
		{"web.", "up IN www.example.org. 60 TXT no", "REFUSED"},
		{"web.", "up IN a.www.example.org. 60 A 192.0.2.9", "REFUSED"},
		{"web.", "up IN www.example.org. 60 A 192.0.2.9|up IN www2.example.org. 60 A 192.0.2.9", "REFUSED"},
		{"web.", "up ANY www.example.org. 0 ANY", "REFUSED"},
		{"any.", "up ANY www.example.org. 0 ANY", "NOERROR"},
		{"any.", "up ANY www.example.org. 0 A", "REFUSED"},
		{"apex.", "up IN example.org. 60 TXT yes", "NOERROR"},
		{"apex.", "up IN www.example.org. 60 TXT no", "REFUSED"},
		{"wild.", "up IN *.wild.example.org. 60 TXT yes", "NOERROR"},
		{"wild.", "up IN a.wild.example.org. 60 TXT no", "REFUSED"},
		{"below.", "up IN ent.example.org. 60 TXT yes|up IN b.a.ent.example.org. 60 TXT yes", "NOERROR"},
		{"below.", "up IN aent.example.org. 60 TXT no", "REFUSED"},
		{"denied.", "up IN www.example.org. 60 TXT yes", "NOERROR"},
		{"denied.", "up IN secret.example.org. 60 TXT no", "REFUSED"},
		{"denied.", "up IN a.hidden.example.org. 60 TXT no", "REFUSED"},
		{"denied.", "up IN a.hidden.example.org. 60 A 192.0.2.9", "NOERROR"},
		// Not all at once either what may not be deleted.
		{"erase.", "up ANY www.example.org. 0 A", "NOERROR"},
		{"erase.", "up ANY www.example.org. 0 ANY", "REFUSED"},
		{"erase.", "up ANY alias.example.org. 0 ANY", "NOERROR"},
		{"erase.", "up ANY example.org. 0 ANY", "NOERROR"}, // NS records stay anyway
		{"erase.", "up ANY www.example.net. 0 ANY", "NOTZONE"},
		{"erase.", "up ANY org. 0 ANY", "NOTZONE"},
		{"first.", "up ANY www.example.org. 0 ANY", "NOERROR"},
		{"ds.", "up IN sub.example.org. 60 DS 1 13 2 aabb", "NOERROR"},
		{"star.", "up IN example.org. 60 DS 1 13 2 aabb", "NOTIMP"},
		{"star.", "up IN sub.example.org. 60 DS 1 13 2 aabb", "NOTIMP"}, // another key's line names the type
		{"star.", "up IN example.org. 60 CDS 1 13 2 aabb", "NOTIMP"},
		{"a.dyn.example.org.", "up IN a.dyn.example.org. 60 A 192.0.2.9", "NOERROR"},
		{"a.dyn.example.org.", "up IN b.dyn.example.org. 60 A 192.0.2.9", "REFUSED"},
		{"a.dyn.example.org.", "up IN a.dyn.example.org. 60 TXT no", "REFUSED"},
		{"b.a.dyn.example.org.", "up IN b.a.dyn.example.org. 60 A 192.0.2.9", "REFUSED"},
		{"host.example.org.", "up IN host.example.org. 60 TXT yes", "NOERROR"},
		// What stands first decides, self lines among it.
		{"a.dyn.example.org.", "up IN a.dyn.example.org. 60 AAAA ::1", "REFUSED"},
		{"b.dyn.example.org.", "up IN b.dyn.example.org. 60 A 192.0.2.9", "NOERROR"},
		{"stranger.", "up IN www.example.org. 60 A 192.0.2.9", "REFUSED"},
		{"stranger.", "pre ANY nope.example.org. 0 ANY", "REFUSED"},
		{"", "up IN www.example.org. 60 A 192.0.2.9", "REFUSED"},
		// The order of the checks.
		{"web.", "pre ANY nope.example.org. 0 ANY|up IN no.example.org. 60 A 192.0.2.9", "NXDOMAIN"},
		{"web.", "pre ANY www.example.org. 0 ANY|up IN no.example.org. 60 A 192.0.2.9|up IN www.example.org. 60 A", "REFUSED"},
		{"web.", "up CH www.example.org. 60 A 192.0.2.9", "FORMERR"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := newBed(t, t.TempDir(), options)
			b.key = tc.key
			before := b.text()
			reply := b.send(newUpdate(t, strings.Split(tc.up, "|")...))
			if reply.Rcode != rcodeOf(tc.rcode) {
				t.Errorf("%s %s: %s, want %s", tc.key, tc.up, dns.RcodeToString[reply.Rcode], tc.rcode)
			}
			if changed := b.text() != before; changed != (tc.rcode == "NOERROR") {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// TestPassedOn: who passes updates on does not know what a name has, and so lets nobody delete all records of one where
// some may have to stay.
func TestPassedOn(t *testing.T) {
	www := []byte("\x03www\x07example\x03org\x00")
	p := &passer{settings: defaults()}
	p.policy.rules = []rule{{key: "key.", deny: true, name: www, types: typeSet{types: []uint16{dns.TypeTXT}}}, {key: "key.", types: typeSet{all: true}}}
	for up, want := range map[string]bool{
		"up ANY www.example.org. 0 ANY":  false,
		"up ANY www.example.org. 0 TXT":  false,
		"up ANY www.example.org. 0 A":    true,
		"up ANY www2.example.org. 0 ANY": true,
	} {
		if _, got := p.allows("key.", netip.MustParseAddr("192.0.2.99"), newUpdate(t, up)); got != want {
			t.Errorf("%s: %v", up, got)
		}
	}
}

// TestNet: an address outside of the networks is refused, whoever signs.
func TestNet(t *testing.T) {
	b := newBed(t, t.TempDir(), "net 192.0.2.0/24 2001:db8::/32\nnet 198.51.100.7 ::ffff:203.0.113.7\nnet ::ffff:203.0.113.32/124")
	for from, rcode := range map[string]int{"192.0.2.1": 0, "198.51.100.7": 0, "198.51.100.8": dns.RcodeRefused, "2001:db8::1": 0, "2001:db9::1": dns.RcodeRefused, "::ffff:192.0.2.9": 0,
		"203.0.113.7": 0, "203.0.113.8": dns.RcodeRefused, "203.0.113.47": 0, "203.0.113.48": dns.RcodeRefused} {
		b.from = from
		if reply := b.send(newUpdate(t, "up IN a.example.org. 60 A 192.0.2.9")); reply.Rcode != rcode {
			t.Errorf("%s: %s", from, dns.RcodeToString[reply.Rcode])
		}
	}
}

// TestHeader: what is no update of this zone, and that the log says why.
func TestHeader(t *testing.T) {
	b := newBed(t, t.TempDir(), "")
	logged := logtest.Capture(t)
	for _, tc := range []struct {
		what   string
		change func(*dns.Msg)
		rcode  int
		line   string
	}{
		{"another zone", func(m *dns.Msg) { m.Question[0].Name = "sub.example.org." }, dns.RcodeNotAuth, "it is for zone sub.example.org."},
		{"a zone above", func(m *dns.Msg) { m.Question[0].Name = "org." }, dns.RcodeNotAuth, "it is for zone org."},
		{"another case", func(m *dns.Msg) { m.Question[0].Name = "Example.ORG." }, dns.RcodeSuccess, "+1 -0"},
		{"no SOA", func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeA }, dns.RcodeFormatError, "malformed"},
		{"another class", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeFormatError, "malformed"},
		{"another class and zone", func(m *dns.Msg) {
			m.Question[0] = dns.Question{Name: "org.", Qtype: dns.TypeSOA, Qclass: dns.ClassCHAOS}
		}, dns.RcodeFormatError, "malformed"},
		{"many records", func(m *dns.Msg) {
			for range 1024 {
				m.Ns = append(m.Ns, test.A("a.example.org. 60 IN A 192.0.2.9"))
			}
		}, dns.RcodeRefused, "at most 1024"},
	} {
		m := newUpdate(t, "up IN a.example.org. 60 A 192.0.2.9")
		m.RecursionDesired = true
		tc.change(m)
		logged.Take()
		reply := b.send(m)
		if !strings.Contains(logged.String(), tc.line) {
			t.Errorf("%s: logged %q", tc.what, logged)
		}
		if reply.Rcode != tc.rcode || reply.Id != m.Id || !reply.RecursionDesired || len(reply.Question) != 1 || reply.Question[0] != m.Question[0] {
			t.Errorf("%s: %v", tc.what, reply)
		}
	}
}

// TestLimits: a zone, an RRset and a name that are full.
func TestLimits(t *testing.T) {
	b := newBed(t, t.TempDir(), "max_records 15\nmax_update_records 5000")
	full := func(b *bed, what string, want int, lines ...string) {
		t.Helper()
		before := b.text()
		if reply := b.send(newUpdate(t, lines...)); reply.Rcode != want || want != 0 && b.text() != before {
			t.Errorf("%s: %s, changed %v", what, dns.RcodeToString[reply.Rcode], b.text() != before)
		}
	}
	full(b, "15th", 0, "up IN a.example.org. 60 A 192.0.2.9")
	full(b, "16th", dns.RcodeRefused, "up IN a.example.org. 60 A 192.0.2.10")
	full(b, "one for another", 0, "up IN a.example.org. 60 A 192.0.2.10", "up NONE a.example.org. 0 A 192.0.2.9")
	b = newBed(t, t.TempDir(), "max_bytes 700")
	full(b, "many octets", dns.RcodeRefused, "up IN a.example.org. 60 TXT "+strings.Repeat("x", 250))
	b = newBed(t, t.TempDir(), "max_update_records 5000")
	var lines []string
	for i := range 1000 {
		lines = append(lines, "up IN a.example.org. 60 TXT x"+strings.Repeat("y", i%200)+string(rune('a'+i/200)))
	}
	full(b, "1000 records", 0, lines...)
	full(b, "1001 records", dns.RcodeRefused, "up IN a.example.org. 60 TXT more")
}

// TestReplay: the same request again gets the same answer and does nothing; after another change, too.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	b := newBed(t, dir, "database "+dir+"/zone.db")
	add := newUpdate(t, "pre NONE a.example.org. 0 ANY", "up IN a.example.org. 60 A 192.0.2.9")
	for range 2 {
		if reply := b.send(add); reply.Rcode != 0 {
			t.Fatal(reply)
		}
	}
	serial := b.d.store.served.Current().Serial()
	b.send(newUpdate(t, "up ANY a.example.org. 0 ANY"))
	after := b.text()
	bad := newUpdate(t, "pre ANY a.example.org. 0 ANY", "up IN b.example.org. 60 A 192.0.2.9")
	for range 2 {
		if reply := b.send(bad); reply.Rcode != dns.RcodeNameError {
			t.Fatal(reply)
		}
	}
	second := newBed(t, dir, "database "+dir+"/zone.db") // as after a reload
	b.stop()
	for range 2 {
		if reply := second.send(add); reply.Rcode != 0 {
			t.Fatal(reply)
		}
	}
	if second.text() != after || second.d.store.served.Current().Serial() != serial+1 {
		t.Errorf("a replay changed the zone")
	}
}

// TestSerials: how serials are made.
func TestSerials(t *testing.T) {
	now := uint32(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).Unix())
	for _, tc := range []struct {
		p            serialPolicy
		serial, want uint32
	}{
		{serialIncrement, 1, 2},
		{serialIncrement, 1<<32 - 1, 1},
		{serialUnixTime, 1, now},
		{serialUnixTime, now, now + 1},
		{serialUnixTime, now + 100, now + 101},
		{serialDate, 1, 2026112200},
		{serialDate, 2026112200, 2026112201},
		{serialDate, 2026112299, 2026112300},
		{serialDate, 2026112400, 2026112401},
	} {
		if got := nextSerial(tc.p, tc.serial, now); got != tc.want || !zone.Newer(got, tc.serial) {
			t.Errorf("%d after %d: %d, want %d", tc.p, tc.serial, got, tc.want)
		}
	}
}

// TestTTL: records get a TTL within the bounds, and the log says so when debugging.
func TestTTL(t *testing.T) {
	b := newBed(t, t.TempDir(), "ttl 30 600")
	log.D.Set()
	t.Cleanup(log.D.Clear)
	logged := logtest.Capture(t)
	b.send(newUpdate(t, "up IN a.example.org. 5 A 192.0.2.9", "up IN b.example.org. 60 A 192.0.2.9", "up IN c.example.org. 4294967295 A 192.0.2.9", "up IN d.example.org. 700 A 192.0.2.9"))
	if line := "TTL 4294967295 of c.example.org. A becomes 30"; !strings.Contains(logged.String(), line) {
		t.Errorf("%q is not in %s", line, logged)
	}
	for _, want := range []string{"a.example.org. 30 IN", "b.example.org. 60 IN", "c.example.org. 30 IN", "d.example.org. 600 IN"} {
		if !strings.Contains(b.text(), want) {
			t.Errorf("%s is not there:\n%s", want, b.text())
		}
	}
}

// TestExplained: refusals tell why to those who use EDNS, and only to them.
func TestExplained(t *testing.T) {
	b := newBed(t, t.TempDir(), "allow web. www.example.org. A")
	b.key = "web."
	m := newUpdate(t, "up IN www.example.org. 60 TXT no")
	if reply := b.send(m.Copy()); reply.IsEdns0() != nil {
		t.Error(reply)
	}
	m.SetEdns0(1232, false)
	opt := b.send(m).IsEdns0()
	if opt == nil || len(opt.Option) != 1 {
		t.Fatal("there is no extended error")
	}
	if e, ok := opt.Option[0].(*dns.EDNS0_EDE); !ok || e.InfoCode != dns.ExtendedErrorCodeProhibited || e.ExtraText != "no permission for www.example.org. TXT" {
		t.Errorf("%v", opt)
	}
}

// TestCutRData: data that ends too early is a mistake of form, whatever a reader of messages makes of it.
func TestCutRData(t *testing.T) {
	opaque := map[uint16]int{dns.TypeCAA: 2, dns.TypeSSHFP: 4, dns.TypeTLSA: 2} // octets at the end that may be any
	for _, whole := range []string{"MX 10 mail.example.org.", "AFSDB 1 a.example.org.", "SRV 1 2 3 a.example.org.", "SOA ns1.example.org. h.example.org. 77 1 1 1 1",
		"SSHFP 1 1 00000000", "TLSA 3 1 1 0000", "LOC 51 30 1 N 0 7 0 W 0m 1m 1m 1m", "HINFO a b", "CAA 0 issue \"ca\"", "RP a.example.org. b.example.org."} {
		name := "a.example.org."
		if strings.HasPrefix(whole, "SOA") {
			name = "example.org."
		}
		m := newUpdate(t, "up IN "+name+" 60 "+whole)
		p, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		size := dns.Len(m.Ns[0]) - len(name) - 11
		for cut := 1; cut < size; cut++ {
			r := new(dns.Msg)
			short := append([]byte(nil), p[:len(p)-cut]...)
			at := len(p) - size - 2
			short[at], short[at+1] = byte((size-cut)>>8), byte(size-cut)
			if r.Unpack(short) != nil {
				continue // the listener answers FORMERR
			}
			rec := recordOf(r.Ns[0])
			if isOther := cut <= opaque[rec.typ]; rec.err == nil && sound(short) && !isOther {
				t.Errorf("%s, %d octets less: %x is taken", whole, cut, rec.rdata)
			}
		}
	}
}

// TestSound: a message has the records that its header tells of.
func TestSound(t *testing.T) {
	m := newUpdate(t, "pre ANY a.example.org. 0 A", "up IN example.org. 60 SOA ns1.example.org. h.example.org. 77 1 1 1 1", "up NONE example.org. 0 SOA")
	m.SetEdns0(1232, false)
	m.Compress = true
	p, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if !sound(p) {
		t.Error("a sound one is none")
	}
	for at := 4; at < 12; at += 2 {
		for _, by := range []byte{1, 255} {
			lies := bytes.Clone(p)
			if lies[at+1] += by; sound(lies) {
				t.Errorf("counts %x are taken", lies[4:12])
			}
		}
	}
	for n := range p {
		if sound(p[:n]) {
			t.Errorf("the first %d octets are taken", n)
		}
	}
	if sound(append(p, 0)) {
		t.Error("an octet more is taken")
	}
}

// TestForms: what no server can read is not taken, and what is odd, but right, is.
func TestForms(t *testing.T) {
	b := newBed(t, t.TempDir(), "allow key. * DS")
	for _, tc := range []struct{ text, rcode string }{
		{"DS \\# 4 00010d02", "FORMERR"},
		{"DS \\# 5 00010d0201", "NOERROR"},
		{"SSHFP \\# 2 0101", "FORMERR"},
		{"TLSA \\# 3 030101", "FORMERR"},
		{"OPENPGPKEY \\# 1 01", "NOERROR"},
		{"NULL \\# 3 00ff3b", "NOERROR"},
		{"TYPE65280 \\# 0", "NOERROR"},
		{"TXT \"\" \"\\000\\255;\\\"\"", "NOERROR"},
		{"CAA 0 issue \"\"", "NOERROR"},
		{"HINFO \"a b\" \"\"", "NOERROR"},
		{"URI 1 2 \"http://a/;\"", "NOERROR"},
		{"NAPTR 1 2 \"\" \"\" \"!^.*$!sip:\\\\1!\" .", "NOERROR"},
		{"SVCB 1 . alpn=h2,h3 port=53 ipv4hint=192.0.2.1 key65000=\"a;b\"", "NOERROR"},
		{"APL 1:192.0.2.0/24 !2:2001:db8::/32", "NOERROR"},
		{"LOC 51 30 12.748 N 0 7 39.612 W 0.00m 0.00m 0.00m 0.00m", "NOERROR"},
		{"IPSECKEY 10 1 2 192.0.2.38 AQNR", "NOERROR"},
		{"HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdx rvs.example.org.", "NOERROR"},
		{"DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=", "NOERROR"},
		{"NSAP-PTR foo.", "NOERROR"}, {"X25 311061700956", "NOERROR"}, {"GPOS -32.6882 116.8652 10.0", "NOERROR"}, {"EUI48 00-00-5e-00-53-2a", "NOERROR"},
		{"NID 10 0014:4fff:ff20:ee64", "NOERROR"}, {"L32 10 10.1.2.0", "NOERROR"}, {"LP 10 l64.example.org.", "NOERROR"}, {"CERT 1 2 3 AQ==", "NOERROR"},
		{"SMIMEA 3 1 1 00", "NOERROR"}, {"CSYNC 66 3 A NS AAAA", "NOERROR"}, {"AMTRELAY 10 0 1 203.0.113.15", "NOERROR"}, {"AVC x", "NOERROR"}, {"RT 1 a.", "NOERROR"},
		{"PX 10 a. b.", "NOERROR"}, {"KX 1 a.", "NOERROR"}, {"DNAME A.b\\.c.", "NOERROR"}, {"MX 1 .", "NOERROR"}, {"EID 0102", "NOERROR"}, {"NIMLOC 0102", "NOERROR"},
		{"UINFO x", "NOERROR"}, {"UID 1", "NOERROR"}, {"GID 1", "NOERROR"}, {"NINFO x", "NOERROR"}, {"RESINFO a=1", "NOERROR"}, {"EUI64 00-00-5e-ef-10-00-00-2a", "NOERROR"},
	} {
		rr, err := dns.NewRR("\\010odd\\.name.a.example.org. 60 IN " + tc.text)
		if err != nil {
			t.Error(tc.text, err)
			continue
		}
		m := new(dns.Msg).SetUpdate("example.org.")
		m.Ns = []dns.RR{rr}
		if got := dns.RcodeToString[b.send(m).Rcode]; got != tc.rcode {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.rcode)
		}
	}
}

// TestDSAtCuts: DS records are at zone cuts (RFC 4035 §2.4), whatever the order in an update.
func TestDSAtCuts(t *testing.T) {
	b := newBed(t, t.TempDir(), "allow key. * DS")
	for _, tc := range []struct{ up, want string }{
		{"up IN sub.example.org. 60 DS 1 13 2 aa", "sub"},
		{"up IN www.example.org. 60 DS 1 13 2 aa", "sub"},
		{"up IN www.example.org. 60 DS 1 13 2 aa|up IN www.example.org. 60 NS ns.sub.example.org.", "sub www"},
		{"up NONE sub.example.org. 0 NS ns.sub.example.org.|up IN sub.example.org. 60 NS ns1.example.org.", "sub www"},
		{"up ANY sub.example.org. 0 NS", "www"},
		{"up ANY www.example.org. 0 ANY", ""},
	} {
		if reply := b.send(newUpdate(t, strings.Split(tc.up, "|")...)); reply.Rcode != dns.RcodeSuccess {
			t.Errorf("%s: %v", tc.up, reply)
		}
		var have []string
		for _, name := range []string{"sub", "www"} {
			if regexp.MustCompile(`(?m)^` + name + `\.example\.org\.\s.*\sDS\s`).MatchString(b.text()) {
				have = append(have, name)
			}
		}
		if got := strings.Join(have, " "); got != tc.want {
			t.Errorf("%s: DS at %q, want %q", tc.up, got, tc.want)
		}
	}
}

// TestFreeze: a frozen zone refuses updates, and is served; then it takes them again.
func TestFreeze(t *testing.T) {
	b := newBed(t, t.TempDir(), "")
	add := newUpdate(t, "up IN a.example.org. 60 A 192.0.2.9")
	b.d.Freeze(true)
	if reply := b.send(add); reply.Rcode != dns.RcodeRefused || strings.Contains(b.text(), "192.0.2.9") {
		t.Errorf("frozen: %v", reply)
	}
	b.d.Freeze(false)
	if reply := b.send(add); reply.Rcode != 0 || !strings.Contains(b.text(), "192.0.2.9") {
		t.Errorf("thawed: %v", reply)
	}
}
