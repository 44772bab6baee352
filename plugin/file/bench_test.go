package file

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// signedOrg is a zone of many hosts with NSEC records; signatures are only shaped like some.
func signedOrg() string {
	var b strings.Builder
	b.WriteString("$ORIGIN example.org.\n$TTL 300\n")
	set := func(owner, typ, data string) {
		labels := strings.Count(owner, ".") + 3
		if strings.HasPrefix(owner, "*") {
			labels--
		}
		if owner == "@" {
			labels = 2
		}
		fmt.Fprintf(&b, "%s %s %s\n", owner, typ, data)
		if typ != "NS" || owner == "@" {
			fmt.Fprintf(&b, "%s RRSIG %s 13 %d 300 20450101000000 20200101000000 1 @ %s\n", owner, typ, labels, strings.Repeat("c2ln", 21)+"c2k=")
		}
	}
	set("@", "SOA", "ns1 hostmaster 1 7200 3600 1209600 300")
	set("@", "NS", "ns1")
	set("@", "NSEC", "alias NS SOA RRSIG NSEC")
	set("alias", "CNAME", "host7")
	set("alias", "NSEC", "host0 CNAME RRSIG NSEC")
	for i := range 1000 {
		owner, next := fmt.Sprintf("host%d", i), fmt.Sprintf("host%d", i+1)
		if i == 999 {
			next = "ns1"
		}
		set(owner, "A", fmt.Sprintf("192.0.2.%d", i%250))
		set(owner, "NSEC", next+" A RRSIG NSEC")
	}
	set("ns1", "A", "192.0.2.53")
	set("ns1", "NSEC", "sub A RRSIG NSEC")
	set("sub", "NS", "ns.sub")
	fmt.Fprintf(&b, "ns.sub A 192.0.2.54\n")
	set("sub", "NSEC", "*.w NS RRSIG NSEC")
	set("*.w", "TXT", "any")
	set("*.w", "NSEC", "@ TXT RRSIG NSEC")
	return b.String()
}

// served is what is asked of it, and how many records each section of the reply has.
var served = []struct {
	what, name, typ string
	rcode           int
	plain, do       [3]int
}{
	{"positive", "host500.example.org.", "A", dns.RcodeSuccess, [3]int{1, 1, 0}, [3]int{2, 2, 0}},
	{"wildcard", "x.w.example.org.", "TXT", dns.RcodeSuccess, [3]int{1, 1, 0}, [3]int{2, 4, 0}},
	{"alias", "alias.example.org.", "A", dns.RcodeSuccess, [3]int{2, 1, 0}, [3]int{4, 2, 0}},
	{"nodata", "host500.example.org.", "TXT", dns.RcodeSuccess, [3]int{0, 1, 0}, [3]int{0, 4, 0}},
	{"nxdomain", "host500x.example.org.", "A", dns.RcodeNameError, [3]int{0, 1, 0}, [3]int{0, 6, 0}},
	{"referral", "www.sub.example.org.", "A", dns.RcodeSuccess, [3]int{0, 1, 1}, [3]int{0, 3, 1}},
}

// lane is a handler with its zone, and what asking it in the wire lane needs.
type lane struct {
	h   plugin.WireHandler
	q   wire.Query
	w   wire.Reply
	buf []byte
}

func newLane(t testing.TB, text string) *lane {
	t.Helper()
	z := NewZone("example.org", "db")
	l := loader{ctx: context.Background(), origin: z.name, file: "db", serial: -1}
	v, err := l.load(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	z.Replace(v)
	zones := map[string]*Zone{"example.org.": z}
	return &lane{h: File{Zones: Zones{Z: zones, Names: []string{"example.org."}}, index: NewIndex(zones)}, buf: make([]byte, 4096)}
}

// ask answers a packet and reports whether that was done in this lane.
func (l *lane) ask(packet []byte) bool {
	if !l.q.Parse(packet) {
		return false
	}
	l.w.Reset(l.buf)
	done := l.h.ServeWire(context.Background(), &l.w, &l.q) == wire.Done && l.w.Holds()
	l.w.Finish(&l.q, 1232)
	return done
}

func query(t testing.TB, name, typ string, do bool) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	if do {
		m.SetEdns0(1232, true)
	}
	p, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestServeWireDoesNotAllocate also shows that each kind of query is answered in the wire lane.
func TestServeWireDoesNotAllocate(t *testing.T) {
	l := newLane(t, signedOrg())
	for _, tc := range served {
		for _, do := range []bool{false, true} {
			p, want := query(t, tc.name, tc.typ, do), tc.plain
			if do {
				want = tc.do
			}
			if !l.ask(p) {
				t.Fatalf("%s, DO %v: not answered in the wire lane", tc.what, do)
			}
			if got := [3]int{l.w.Count(wire.Answer), l.w.Count(wire.Authority), l.w.Count(wire.Additional)}; l.w.Rcode() != tc.rcode || got != want {
				t.Errorf("%s, DO %v: rcode %d, records %v, want %d, %v", tc.what, do, l.w.Rcode(), got, tc.rcode, want)
			}
			if n := testing.AllocsPerRun(200, func() { l.ask(p) }); n != 0 {
				t.Errorf("%s, DO %v: %v allocations", tc.what, do, n)
			}
		}
	}
}

func BenchmarkServeWire(b *testing.B) {
	l := newLane(b, signedOrg())
	for _, tc := range served {
		for _, do := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/do=%v", tc.what, do), func(b *testing.B) {
				p := query(b, tc.name, tc.typ, do)
				b.ReportAllocs()
				for b.Loop() {
					if !l.ask(p) {
						b.Fatal("not answered in the wire lane")
					}
				}
			})
		}
	}
}
