package dynupdate

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/tsig"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const seedText = `$ORIGIN example.org.
$TTL 300
@ SOA ns1 hostmaster 10 7200 3600 1209600 60
@ NS ns1
@ NS ns2
@ MX 10 mail
ns1 A 192.0.2.53
ns2 A 192.0.2.54
www A 192.0.2.1
www A 192.0.2.2
www TXT "one"
alias CNAME www
x.ent TXT "below"
*.wild TXT "any"
sub NS ns.sub
ns.sub A 192.0.2.55
`

// bed is a zone that is served, with the key that may change all of it.
type bed struct {
	t    testing.TB
	d    *DynUpdate
	c    *caddy.Controller
	h    plugin.Handler
	key  string
	from string // the client's address
}

// newBed sets up a directive, with a seed in the same folder, and starts it.
func newBed(t testing.TB, dir, options string) *bed {
	t.Helper()
	b, err := tryBed(t, dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tryBed(t testing.TB, dir, options string) (*bed, error) {
	t.Helper()
	return tryZone(t, dir, "example.org", seedText, options)
}

// tryZone is tryBed for a zone, which follows others.
func tryZone(t testing.TB, dir, name, text, options string, follows ...*bed) (*bed, error) {
	t.Helper()
	seed := filepath.Join(dir, "db")
	if _, err := os.Stat(seed); err != nil {
		if err := os.WriteFile(seed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := caddy.NewTestController("dns", "dynupdate {\nfile "+seed+"\nallow key. * *\n"+options+"\n}")
	c.ServerBlockKeys = []string{name}
	if err := setup(c); err != nil {
		return nil, err
	}
	cfg := dnsserver.GetConfig(c)
	var h plugin.Handler
	for _, p := range slices.Backward(cfg.Plugin) {
		h = p(h)
	}
	b := &bed{t: t, d: h.(*DynUpdate), c: c, key: "key.", from: "192.0.2.99"}
	for _, f := range follows {
		writable(c)[f.d.Zone] = append(writable(c)[f.d.Zone], f.d)
	}
	if err := b.d.findFollowed(writable(c)); err != nil {
		return nil, err
	}
	b.h = &tsig.TSIGServer{Zones: []string{"."}, Next: h}
	if err := b.d.store.enter(b.d.terms(b.c)); err != nil {
		return nil, err
	}
	b.d.store.listen(b.d)
	t.Cleanup(b.stop)
	return b, nil
}

func (b *bed) stop() { b.d.leave.Do(func() { release(b.d.store, b.d) }) }

// client is the client's end.
type client struct {
	test.ResponseWriter
}

// send sends a message, signed unless the bed has no key, and returns the answer.
func (b *bed) send(m *dns.Msg) *dns.Msg {
	b.t.Helper()
	if b.key != "" && m.IsTsig() == nil {
		m.SetTsig(b.key, dns.HmacSHA256, 300, time.Now().Unix())
		m.IsTsig().MAC, m.IsTsig().MACSize = fmt.Sprintf("%032x", nextMAC.Add(1)), 16
	}
	return b.deliver(m)
}

// deliver is a message on its way through the wire.
func (b *bed) deliver(m *dns.Msg) *dns.Msg {
	b.t.Helper()
	packed, err := m.Pack()
	if err != nil {
		b.t.Fatal(err)
	}
	r := new(dns.Msg)
	if err := r.Unpack(packed); err != nil {
		b.t.Fatal(err)
	}
	rec := dnstest.NewRecorder(&client{test.ResponseWriter{RemoteIP: b.from}})
	code, err := b.h.ServeDNS(context.Background(), rec, r)
	if err != nil || rec.Msg == nil {
		b.t.Fatalf("code %d, error %v, message %v", code, err, rec.Msg)
	}
	return rec.Msg
}

// newUpdate is an UPDATE of lines: "pre" or "up", the class, and a record without one, of which data may be left out.
func newUpdate(t testing.TB, lines ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetUpdate("example.org.")
	for _, line := range lines {
		f := strings.Fields(line)
		class := map[string]uint16{"IN": dns.ClassINET, "ANY": dns.ClassANY, "NONE": dns.ClassNONE, "CH": dns.ClassCHAOS}[f[1]]
		name, ttl, typ := f[2], f[3], f[4]
		var rr dns.RR
		if len(f) > 5 {
			var err error
			if rr, err = dns.NewRR(fmt.Sprintf("%s %s IN %s %s", name, ttl, typ, strings.Join(f[5:], " "))); err != nil {
				t.Fatal(line, err)
			}
			rr.Header().Class = class
		} else {
			var seconds uint32
			fmt.Sscan(ttl, &seconds)
			number, ok := dns.StringToType[typ]
			if !ok {
				fmt.Sscanf(typ, "TYPE%d", &number)
			}
			rr = &dns.ANY{Hdr: dns.RR_Header{Name: name, Rrtype: number, Class: class, Ttl: seconds}}
		}
		if f[0] == "pre" {
			m.Answer = append(m.Answer, rr)
		} else {
			m.Ns = append(m.Ns, rr)
		}
	}
	return m
}

// zoneText is the records that are served, one a line, sorted; the serial stands in the SOA record.
func zoneText(t testing.TB, z *zone.Zone) string {
	t.Helper()
	var lines []string
	w := z.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Join(strings.Fields(rr.String()), " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (b *bed) text() string { return zoneText(b.t, b.d.store.served.Current()) }

// difference is what one text has more than another, and less.
func difference(before, after string) (lines []string) {
	set := func(s string) map[string]bool {
		m := map[string]bool{}
		for l := range strings.SplitSeq(s, "\n") {
			if !strings.Contains(l, " SOA ") {
				m[l] = true
			}
		}
		return m
	}
	was, is := set(before), set(after)
	for l := range maps.Keys(was) {
		if !is[l] {
			lines = append(lines, "-"+l)
		}
	}
	for l := range maps.Keys(is) {
		if !was[l] {
			lines = append(lines, "+"+l)
		}
	}
	slices.Sort(lines)
	return lines
}

func rcodeOf(name string) int {
	for code, text := range dns.RcodeToString {
		if text == name {
			return code
		}
	}
	return -1
}

// TestPrerequisites: each form of RFC 2136 §2.4, true and false.
func TestPrerequisites(t *testing.T) {
	b := newBed(t, t.TempDir(), "")
	for _, tc := range []struct{ pre, rcode string }{
		{"pre ANY www.example.org. 0 ANY", "NOERROR"},
		{"pre ANY WWW.Example.ORG. 0 ANY", "NOERROR"},
		{"pre ANY nope.example.org. 0 ANY", "NXDOMAIN"},
		{"pre ANY ent.example.org. 0 ANY", "NXDOMAIN"},
		{"pre ANY y.wild.example.org. 0 ANY", "NXDOMAIN"},
		{"pre ANY www.example.org. 0 A", "NOERROR"},
		{"pre ANY www.example.org. 0 AAAA", "NXRRSET"},
		{"pre ANY nope.example.org. 0 A", "NXRRSET"},
		{"pre ANY ns.sub.example.org. 0 A", "NOERROR"},
		{"pre NONE nope.example.org. 0 ANY", "NOERROR"},
		{"pre NONE ent.example.org. 0 ANY", "NOERROR"},
		{"pre NONE www.example.org. 0 ANY", "YXDOMAIN"},
		{"pre NONE www.example.org. 0 AAAA", "NOERROR"},
		{"pre NONE www.example.org. 0 A", "YXRRSET"},
		{"pre IN www.example.org. 0 A 192.0.2.1|pre IN WWW.example.org. 0 A 192.0.2.2", "NOERROR"},
		{"pre IN www.example.org. 0 A 192.0.2.1", "NXRRSET"},
		{"pre IN www.example.org. 0 A 192.0.2.1|pre IN www.example.org. 0 A 192.0.2.1", "NXRRSET"},
		{"pre IN www.example.org. 0 A 192.0.2.1|pre IN www.example.org. 0 A 192.0.2.3", "NXRRSET"},
		{"pre IN alias.example.org. 0 CNAME WWW.example.org.", "NOERROR"},
		{"pre IN nope.example.org. 0 A 192.0.2.1", "NXRRSET"},
		{"pre ANY www.example.org. 1 ANY", "FORMERR"},
		{"pre IN www.example.org. 1 A 192.0.2.1", "FORMERR"},
		{"pre ANY www.example.org. 0 A 192.0.2.1", "FORMERR"},
		{"pre NONE www.example.org. 0 A 192.0.2.1", "FORMERR"},
		{"pre IN www.example.org. 0 ANY", "FORMERR"},
		{"pre IN www.example.org. 0 A", "FORMERR"},
		{"pre CH www.example.org. 0 A 192.0.2.1", "FORMERR"},
		{"pre ANY www.example.org. 0 AXFR", "FORMERR"},
		{"pre NONE www.example.org. 0 MAILB", "FORMERR"},
		{"pre ANY www.example.net. 0 ANY", "NOTZONE"},
		{"pre ANY www.example.org. 0 NSEC", "NOTIMP"},
		{"pre ANY www.example.org. 0 ANY|pre ANY nope.example.org. 0 ANY", "NXDOMAIN"},
		{"pre ANY nope.example.org. 0 A|pre NONE www.example.org. 0 ANY", "NXRRSET"},
	} {
		before := b.text()
		m := newUpdate(t, append(strings.Split(tc.pre, "|"), "up IN new.example.org. 60 A 192.0.2.9")...)
		if reply := b.send(m); reply.Rcode != rcodeOf(tc.rcode) {
			t.Errorf("%s: %s, want %s", tc.pre, dns.RcodeToString[reply.Rcode], tc.rcode)
		}
		if changed := b.text() != before; changed != (tc.rcode == "NOERROR") {
			t.Errorf("%s: changed %v", tc.pre, changed)
		}
		if tc.rcode == "NOERROR" {
			b.send(newUpdate(t, "up ANY new.example.org. 0 ANY"))
		}
	}
}

// TestUpdates: each form of RFC 2136 §2.5, and what is passed over.
func TestUpdates(t *testing.T) {
	for i, tc := range []struct {
		up, rcode, diff string
		serial          uint32 // 10 if nothing changes
	}{
		{"up IN new.example.org. 60 A 192.0.2.9", "NOERROR", "+new.example.org. 60 IN A 192.0.2.9", 11},
		{"up IN New.Example.org. 60 A 192.0.2.9", "NOERROR", "+new.example.org. 60 IN A 192.0.2.9", 11},
		{"up IN example.org. 60 TXT apex", "NOERROR", `+example.org. 60 IN TXT "apex"`, 11},
		{"up IN new.example.org. 60 TYPE65280 \\# 2 0102", "NOERROR", "+new.example.org. 60 CLASS1 TYPE65280 \\# 2 0102", 11},
		{"up IN new.example.org. 60 TYPE65280 \\# 0", "NOERROR", "+new.example.org. 60 CLASS1 TYPE65280 \\# 0", 11},
		{"up IN new.example.org. 0 A 192.0.2.9", "NOERROR", "+new.example.org. 0 IN A 192.0.2.9", 11},
		{"up IN www.example.org. 300 A 192.0.2.1", "NOERROR", "", 10},
		{"up IN mail.example.org. 300 CNAME www|up NONE mail.example.org. 0 CNAME www", "NOERROR", "", 10},
		{"up IN www.example.org. 60 A 192.0.2.1", "NOERROR",
			"+www.example.org. 60 IN A 192.0.2.1 +www.example.org. 60 IN A 192.0.2.2 -www.example.org. 300 IN A 192.0.2.1 -www.example.org. 300 IN A 192.0.2.2", 11},
		{"up IN www.example.org. 60 CNAME ns1.example.org.", "NOERROR", "", 10},
		{"up IN alias.example.org. 60 A 192.0.2.9", "NOERROR", "", 10},
		{"up IN alias.example.org. 300 CNAME ns1.example.org.", "NOERROR",
			"+alias.example.org. 300 IN CNAME ns1.example.org. -alias.example.org. 300 IN CNAME www.example.org.", 11},
		{"up IN alias.example.org. 300 CNAME WWW.example.org.", "NOERROR", "", 10},
		{"up IN d.example.org. 60 DNAME a.example.net.|up IN d.example.org. 60 DNAME b.example.net.|up IN d.example.org. 60 A 192.0.2.9", "NOERROR",
			"+d.example.org. 60 IN A 192.0.2.9 +d.example.org. 60 IN DNAME b.example.net.", 11},
		{"up ANY www.example.org. 0 A", "NOERROR", "-www.example.org. 300 IN A 192.0.2.1 -www.example.org. 300 IN A 192.0.2.2", 11},
		{"up ANY www.example.org. 0 AAAA", "NOERROR", "", 10},
		{"up ANY nope.example.org. 0 ANY", "NOERROR", "", 10},
		{"up ANY www.example.org. 0 ANY", "NOERROR",
			`-www.example.org. 300 IN A 192.0.2.1 -www.example.org. 300 IN A 192.0.2.2 -www.example.org. 300 IN TXT "one"`, 11},
		{"up ANY example.org. 0 ANY", "NOERROR", "-example.org. 300 IN MX 10 mail.example.org.", 11},
		{"up ANY example.org. 0 NS", "NOERROR", "", 10},
		{"up ANY example.org. 0 SOA", "NOERROR", "", 10},
		{"up ANY sub.example.org. 0 NS", "NOERROR", "-sub.example.org. 300 IN NS ns.sub.example.org.", 11},
		{"up NONE www.example.org. 0 A 192.0.2.1", "NOERROR", "-www.example.org. 300 IN A 192.0.2.1", 11},
		{"up NONE www.example.org. 0 A 192.0.2.7", "NOERROR", "", 10},
		{"up NONE alias.example.org. 0 CNAME Www.example.org.", "NOERROR", "-alias.example.org. 300 IN CNAME www.example.org.", 11},
		{"up NONE example.org. 0 NS ns1.example.org.|up NONE example.org. 0 NS ns2.example.org.", "NOERROR", "-example.org. 300 IN NS ns1.example.org.", 11},
		{"up NONE example.org. 0 SOA ns1 hostmaster 10 7200 3600 1209600 60", "NOERROR", "", 10},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 9 1 1 1 1", "NOERROR", "", 10},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 10 1 1 1 1", "NOERROR", "", 10},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 77 1 1 1 1", "NOERROR", "", 77},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 77 1 1 1 1|up ANY www.example.org. 0 TXT", "NOERROR", `-www.example.org. 300 IN TXT "one"`, 77},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 2147483657 1 1 1 1", "NOERROR", "", 2147483657},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 2147483658 1 1 1 1", "NOERROR", "", 10},
		{"up IN example.org. 300 SOA ns1.example.org. h.example.org. 0 1 1 1 1", "FORMERR", "", 10},
		{"up IN www.example.org. 300 SOA ns1.example.org. h.example.org. 77 1 1 1 1", "FORMERR", "", 10},
		{"up IN a.example.org. 60 A 192.0.2.9|up IN www.example.org. 60 A", "FORMERR", "", 10},
		{"up IN a.example.org. 60 A 192.0.2.9|up ANY www.example.org. 1 A", "FORMERR", "", 10},
		{"up ANY www.example.org. 0 A 192.0.2.1", "FORMERR", "", 10},
		{"up NONE www.example.org. 1 A 192.0.2.1", "FORMERR", "", 10},
		{"up NONE www.example.org. 0 ANY", "FORMERR", "", 10},
		{"up IN www.example.org. 0 ANY", "FORMERR", "", 10},
		{"up CH www.example.org. 0 A 192.0.2.1", "FORMERR", "", 10},
		{"up ANY www.example.org. 0 AXFR", "FORMERR", "", 10},
		{"up IN a.example.org. 60 A 192.0.2.9|up IN www.example.net. 60 A 192.0.2.9", "NOTZONE", "", 10},
		{"up IN a.example.org. 60 A 192.0.2.9|up IN www.example.org. 60 NSEC a.example.org. A", "NOTIMP", "", 10},
		{"up ANY www.example.org. 0 RRSIG", "NOTIMP", "", 10},
		{"up IN sub.example.org. 60 DS 1 13 2 aa", "NOTIMP", "", 10},
		{"up IN a.ent.example.org. 60 A 192.0.2.9|up ANY x.ent.example.org. 0 ANY|up ANY a.ent.example.org. 0 A", "NOERROR", `-x.ent.example.org. 300 IN TXT "below"`, 11},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := newBed(t, t.TempDir(), "")
			before := b.text()
			reply := b.send(newUpdate(t, strings.Split(tc.up, "|")...))
			if reply.Rcode != rcodeOf(tc.rcode) || !reply.Authoritative || reply.Opcode != dns.OpcodeUpdate || len(reply.Question) != 1 || len(reply.Answer)+len(reply.Ns) > 0 {
				t.Errorf("%s: %v, want %s", tc.up, reply, tc.rcode)
			}
			if got := strings.Join(difference(before, b.text()), " "); got != tc.diff {
				t.Errorf("%s: changed %s\nwant %s", tc.up, got, tc.diff)
			}
			if serial := b.d.store.served.Current().Serial(); serial != tc.serial {
				t.Errorf("%s: serial %d, want %d", tc.up, serial, tc.serial)
			}
		})
	}
}
