package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestServe(t *testing.T) {
	logtest.Capture(t)
	x := setupOf(t, "transfer example.org example.net missing.test {\nto 10.240.0.1:99\n}\ntransfer sub.example.org {\nto 192.0.2.1\n}\ntransfer open.test {\nto *\n}")
	x.Transferers = []Transferer{&source{v: version(t, 7, "a", "b")}}
	whole := "SOA7 example.org./NS a/A b/A SOA7"
	edns := axfr("example.org.")
	edns.SetEdns0(4096, true)
	for _, tc := range []struct {
		what string
		c    *client
		m    *dns.Msg
		want string
	}{
		{"AXFR", tcp(), axfr("example.org."), whole},
		{"in another case", tcp(), axfr("EXAMPLE.org."), whole},
		{"with EDNS", tcp(), edns, whole},
		{"IXFR without a journal", tcp(), ixfr(5), whole},
		{"IXFR of what is current", tcp(), ixfr(7), "SOA7"},
		{"IXFR with a newer serial", tcp(), ixfr(8), "SOA7"},
		{"IXFR with a serial around the corner", tcp(), ixfr(4000000000), whole},
		{"IXFR over UDP", &client{}, ixfr(5), "SOA7"},
		{"AXFR over UDP", &client{}, axfr("example.org."), "REFUSED <nil>"},
		{"below the zone", tcp(), axfr("x.example.org."), "NOTZONE <nil>"},
		{"no plugin has it", tcp(), axfr("missing.test."), "NOTZONE <nil>"},
		{"no stanza", tcp(), axfr("example.com."), "NOTZONE <nil>"},
		{"another's stanza is longer", tcp(), axfr("sub.example.org."), "REFUSED <nil>"},
		{"open for all, but not there", tcp(), axfr("open.test."), "NOTZONE <nil>"},
		{"another client", &client{ResponseWriter: test.ResponseWriter{TCP: true, RemoteIP: "192.0.2.9"}}, axfr("example.org."), "REFUSED <nil>"},
		{"IXFR without serial", tcp(), func() *dns.Msg { m := ixfr(1); m.Ns = nil; return m }(), "SERVFAIL an IXFR query needs one SOA record in its authority section"},
		{"IXFR with something else", tcp(), func() *dns.Msg { m := ixfr(1); m.Ns = []dns.RR{test.A("x. A 192.0.2.1")}; return m }(), "SERVFAIL an IXFR query needs one SOA record in its authority section"},
		{"another type", tcp(), new(dns.Msg).SetQuestion("example.org.", dns.TypeA), "NOTZONE <nil>"},
	} {
		if got := transferOf(t, x, tc.c, tc.m); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.what, got, tc.want)
		}
		if tc.c.taken != len(tc.c.messages) {
			t.Errorf("%s: %d of %d messages were taken as they lay there", tc.what, tc.c.taken, len(tc.c.messages))
		}
	}
	x.Transferers = []Transferer{&source{err: errors.New("no SOA")}}
	if got := transferOf(t, x, tcp(), axfr("example.org.")); got != "SERVFAIL plugin/transfer: no SOA" {
		t.Errorf("without data: %s", got)
	}
}

// Plugins above that look at replies see messages.
func TestAbove(t *testing.T) {
	logtest.Capture(t)
	x := setupOf(t, "transfer example.org {\nto *\n}")
	x.Transferers = []Transferer{&source{v: version(t, 7, "a", "b")}}
	rec := dnstest.NewRecorder(tcp())
	if rc, err := x.ServeDNS(context.Background(), rec, axfr("example.org.")); rc != 0 || err != nil {
		t.Fatal(rc, err)
	}
	if rec.Msg == nil || len(rec.Msg.Answer) != 5 || !rec.Msg.Authoritative || rec.Len == 0 {
		t.Errorf("seen above: %v", rec.Msg)
	}
}

// TestWire: other queries pass in the wire lane.
func TestWire(t *testing.T) {
	x := &Transfer{Next: test.NextHandler(0, nil)}
	p, _ := new(dns.Msg).SetQuestion("example.org.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	if !q.Parse(p) || x.ServeWire(context.Background(), &w, &q) != wire.Unpack || x.WireSelf() != x {
		t.Error("the next plugin was not asked")
	}
	if p, _ = axfr("example.org.").Pack(); q.Parse(p) {
		t.Error("a transfer in the wire lane")
	}
}

// TestIncrements: what changed is sent, as long as it is known.
func TestIncrements(t *testing.T) {
	out := logtest.Capture(t)
	x := setupOf(t, "transfer example.org {\nto *\n}")
	s := &source{v: version(t, 1, "a")}
	x.Transferers = []Transferer{s}
	change := func(v *zone.Zone) {
		x.Changed("example.org.", s.v, v)
		s.v = v
	}
	change(version(t, 2, "a", "b"))
	change(version(t, 3, "b"))
	for _, tc := range []struct {
		serial uint32
		want   string
	}{
		{1, "SOA3 SOA1 a/A SOA3 b/A SOA3"}, // one delta of two
		{2, "SOA3 SOA2 a/A SOA3 SOA3"},
		{3, "SOA3"},
		{0, "SOA3 example.org./NS b/A SOA3"},
	} {
		if got := transferOf(t, x, tcp(), ixfr(tc.serial)); got != tc.want {
			t.Errorf("since %d: got %s, want %s", tc.serial, got, tc.want)
		}
	}
	for _, want := range []string{
		`Outgoing transfer of 6 records of zone "example.org." to 10.240.0.1 for 3 SOA serial`,
		`Outgoing noop, incremental transfer for up to date zone "example.org." to 10.240.0.1 for 3 SOA serial`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("logged %q, want %s", out, want)
		}
	}
	// More changed than there is.
	change(version(t, 4, "c", "d", "e", "f"))
	if got := transferOf(t, x, tcp(), ixfr(3)); got != "SOA4 SOA3 b/A SOA4 c/A d/A e/A f/A SOA4" && !strings.HasPrefix(got, "SOA4 example.org./NS") {
		t.Errorf("got %s", got)
	}
	// Versions are counted, too.
	for i := range journalVersions {
		change(version(t, 5+i, "c", "d", "e", "f"))
	}
	if got := transferOf(t, x, tcp(), ixfr(4)); got != "SOA20 SOA4 SOA20 SOA20" {
		t.Errorf("16 versions back: %s", got)
	}
	if got := transferOf(t, x, tcp(), ixfr(3)); !strings.HasPrefix(got, "SOA20 example.org./NS") {
		t.Errorf("17 versions back: %s", got)
	}
	// A version that came from nowhere.
	v := version(t, 30, "x")
	s.v = v
	x.Changed("example.org.", nil, v)
	if got := transferOf(t, x, tcp(), ixfr(20)); got != "SOA30 example.org./NS x/A SOA30" {
		t.Errorf("got %s", got)
	}
	x.Changed("other.test.", version(t, 1), version(t, 2)) // no stanza
	if len(x.journals) != 0 {
		t.Errorf("%d journals", len(x.journals))
	}
}

// TestSameSerial: who has a serial that two versions had gets the whole zone for the next one, as it may have the first of
// them; others get what changed. A change that is too large for the journal makes no difference.
func TestSameSerial(t *testing.T) {
	for _, second := range [][]string{{"a", "b", "c"}, {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}} {
		x := setupOf(t, "transfer example.org {\nto *\n}")
		s := &source{v: version(t, 1, "a")}
		x.Transferers = []Transferer{s}
		change := func(serial int, hosts ...string) {
			v := version(t, serial, hosts...)
			x.Changed("example.org.", s.v, v)
			s.v = v
		}
		change(2, "a", "b")
		change(2, second...)
		change(3, append(slices.Clone(second), "z")...)
		if got := transferOf(t, x, tcp(), ixfr(2)); !strings.HasPrefix(got, "SOA3 example.org./NS a/A") {
			t.Errorf("since 2: got %s", got)
		}
		change(4, append(slices.Clone(second), "y")...)
		if got := transferOf(t, x, tcp(), ixfr(3)); got != "SOA4 SOA3 z/A SOA4 y/A SOA4" {
			t.Errorf("since 3: got %s", got)
		}
		if got := transferOf(t, x, tcp(), ixfr(2)); !strings.HasPrefix(got, "SOA4 example.org./NS a/A") {
			t.Errorf("since 2: got %s", got)
		}
		if got := transferOf(t, x, tcp(), ixfr(1)); len(second) < 4 && !strings.HasPrefix(got, "SOA4 SOA1 SOA4 b/A c/A y/A") {
			t.Errorf("since 1: got %s", got)
		}
	}
}

// TestSerialBack: a serial that went back comes again, with another version. Who had that serial before gets the whole zone.
func TestSerialBack(t *testing.T) {
	x := setupOf(t, "transfer example.org {\nto *\n}")
	s := &source{v: version(t, 8, "a", "b", "c")}
	x.Transferers = []Transferer{s}
	for i, serial := range []int{9, 7, 8, 9, 10} {
		v := version(t, serial, "a", "b", "c", fmt.Sprint("n", i))
		x.Changed("example.org.", s.v, v)
		s.v = v
	}
	for serial, want := range map[uint32]string{7: "SOA10 SOA7 n1/A SOA10 n4/A SOA10", 8: "SOA10 example.org./NS", 9: "SOA10 example.org./NS"} {
		if got := transferOf(t, x, tcp(), ixfr(serial)); !strings.HasPrefix(got, want) {
			t.Errorf("since %d: got %s, want %s", serial, got, want)
		}
	}
}

// TestLarge: many messages, which a client reads as one zone.
func TestLarge(t *testing.T) {
	logtest.Capture(t)
	x := setupOf(t, "transfer example.org {\nto *\n}")
	var hosts []string
	for i := range 5000 {
		hosts = append(hosts, fmt.Sprintf("a-host-with-a-long-name-%d", i))
	}
	x.Transferers = []Transferer{&source{v: version(t, 1, hosts...)}}
	c := tcp()
	got := strings.Fields(transferOf(t, x, c, axfr("example.org.")))
	if len(got) != 5003 || len(c.messages) < 10 {
		t.Errorf("%d records in %d messages", len(got), len(c.messages))
	}
	c = tcp()
	c.fail = 3
	if got := transferOf(t, x, c, axfr("example.org.")); !strings.HasSuffix(got, "SERVFAIL plugin/transfer: transfer of example.org. to 10.240.0.1: connection reset") {
		t.Errorf("ends in %s", got[len(got)-100:])
	}
}

// A record that fits into no message ends the transfer; it would have no end otherwise.
func TestTooLargeRecord(t *testing.T) {
	logtest.Capture(t)
	long := "a.example.org. 300 IN TXT" + strings.Repeat(" "+strings.Repeat("x", 255), 255)
	for octets, want := range map[int]string{
		100: "",
		254: "SERVFAIL plugin/transfer: transfer of example.org. to 10.240.0.1: a TXT record of a.example.org. with 65535 octets of data fits into no message",
	} {
		b := zone.NewBuilder(wire.MustName("example.org"), t.Logf)
		for _, text := range []string{"example.org. 300 IN SOA ns h 1 2 3 4 5", long + " " + strings.Repeat("y", octets)} {
			rr, err := dns.NewRR(text)
			if err == nil {
				err = b.AddRR(rr)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		v, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		x := setupOf(t, "transfer example.org {\nto *\n}")
		x.Transferers = []Transferer{&source{v: v}}
		c := tcp()
		c.fail = 10 // messages
		if got := transferOf(t, x, c, axfr("example.org.")); !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "SERVFAIL") {
			t.Errorf("%d octets: ends in %s", octets, got[max(0, len(got)-200):])
		}
	}
}

func TestChannel(t *testing.T) {
	out := logtest.Capture(t)
	soa := test.SOA("example.net. 300 IN SOA ns.example.net. hostmaster.example.net. 7 7200 3600 1209600 300")
	rrs := []dns.RR{soa}
	for i := range 2000 {
		rrs = append(rrs, test.TXT(fmt.Sprintf("host%d.example.net. 300 IN TXT \"some text that is long enough for more than one message\"", i)))
	}
	rrs = append(rrs, soa)
	x := setupOf(t, "transfer {\nto *\n}")
	for _, tc := range []struct {
		what    string
		rrs     []dns.RR
		serial  int // -1 for AXFR
		fail    int
		records int
		want    string
	}{
		{"over UDP", rrs, 6, 0, 1, ""},
		{"over UDP, up to date", rrs, 7, 0, 1, ""},
		{"all", rrs, -1, 0, 2002, ""},
		{"up to date", rrs, 7, 0, 1, ""},
		{"older", rrs, 6, 0, 2002, ""},
		{"refused", rrs, 13, 0, 0, "SERVFAIL plugin/transfer: bad luck"},
		{"the client is gone", rrs, -1, 1, 0, "connection reset"},
		{"nothing at all", nil, -1, 0, 0, ""},
		{"no zone", rrs[1:3], -1, 0, 0, "the first record is no SOA record"},
	} {
		ch := &channel{rrs: tc.rrs, each: 300, read: make(chan struct{})}
		x.Transferers = []Transferer{&source{}, ch}
		m := axfr("example.net.")
		if tc.serial >= 0 {
			m = new(dns.Msg).SetIxfr("example.net.", uint32(tc.serial), "a.", "b.")
		}
		c := tcp()
		c.fail = tc.fail
		c.TCP = !strings.HasPrefix(tc.what, "over UDP")
		got := transferOf(t, x, c, m)
		if tc.serial != 13 {
			<-ch.read // whatever happens, it was read to its end
		}
		if n := strings.Count(got, "/") - strings.Count(got, "plugin/") + strings.Count(got, "SOA7"); tc.fail == 0 && tc.records > 0 && n != tc.records || !strings.Contains(got, tc.want) || tc.want == "" && strings.Contains(got, "SERVFAIL") {
			t.Errorf("%s: %d records, %s", tc.what, n, got[max(0, len(got)-200):])
		}
		if tc.records > 1 && len(c.messages) < 2 {
			t.Errorf("%s: %d messages", tc.what, len(c.messages))
		}
	}
	if want := `Outgoing transfer of 2002 records of zone "example.net." to 10.240.0.1 for 7 SOA serial`; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q", out)
	}
}

func BenchmarkAXFR(b *testing.B) {
	logtest.Capture(b)
	var hosts []string
	for i := range 100000 {
		hosts = append(hosts, fmt.Sprintf("host%d", i))
	}
	x := &Transfer{Transferers: []Transferer{&source{v: version(b, 1, hosts...)}}, stanzas: []*stanza{{zones: []string{"."}, to: []target{{any: true}}}}}
	w := &discard{ResponseWriter: test.ResponseWriter{TCP: true}}
	b.ReportAllocs()
	for b.Loop() {
		if rcode, err := x.ServeDNS(context.Background(), w, axfr("example.org.")); rcode != 0 || err != nil {
			b.Fatal(rcode, err)
		}
	}
	if w.n < 100000*20 {
		b.Fatalf("%d octets", w.n)
	}
	b.SetBytes(int64(w.n / b.N))
}

type discard struct {
	test.ResponseWriter
	n int
}

func (d *discard) TakeReply(w *wire.Reply, r *dns.Msg) (bool, error) {
	_, err := d.Write(w.End(wire.EndFor(r, wire.MaxMessage)))
	return true, err
}

func (d *discard) Write(p []byte) (int, error) {
	d.n += len(p)
	return len(p), nil
}
