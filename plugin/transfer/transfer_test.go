package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// version is example.org. with that serial and some hosts.
func version[N int | uint32](t testing.TB, serial N, hosts ...string) *zone.Zone {
	t.Helper()
	b := zone.NewBuilder(wire.MustName("example.org"), t.Logf)
	rrs := []string{fmt.Sprintf("example.org. 300 IN SOA ns.example.org. hostmaster.example.org. %d 7200 3600 1209600 300", serial), "example.org. 300 IN NS ns.example.org."}
	for _, h := range hosts {
		rrs = append(rrs, h+".example.org. 300 IN A 192.0.2.1")
	}
	for _, text := range rrs {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// source has one zone.
type source struct {
	v   *zone.Zone
	err error
}

func (s *source) Version(name string) (*zone.Zone, error) {
	if name != "example.org." {
		return nil, ErrNotAuthoritative
	}
	return s.v, s.err
}

func (s *source) Transfer(string, uint32) (<-chan []dns.RR, error) {
	panic("a Source is asked for Version")
}

// channel is a Transferer that knows no packed zones.
type channel struct {
	rrs  []dns.RR
	each int // records in a batch
	read chan struct{}
}

func (c *channel) Transfer(name string, serial uint32) (<-chan []dns.RR, error) {
	if name != "example.net." {
		return nil, ErrNotAuthoritative
	}
	if serial == 13 {
		return nil, errors.New("bad luck")
	}
	ch := make(chan []dns.RR)
	go func() {
		defer close(c.read)
		defer close(ch)
		if serial >= 7 {
			ch <- c.rrs[:1]
			return
		}
		for rrs := c.rrs; len(rrs) > 0; {
			n := min(c.each, len(rrs))
			ch <- rrs[:n]
			rrs = rrs[n:]
		}
	}()
	return ch, nil
}

// client is a writer that keeps all that is written.
type client struct {
	test.ResponseWriter
	messages []*dns.Msg
	taken    int // of these, as they lay in a lane
	fail     int // from which write on
}

func (c *client) WriteMsg(m *dns.Msg) error {
	if c.fail > 0 && len(c.messages) >= c.fail {
		return errors.New("connection reset")
	}
	p, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(p)
	return err
}

// TakeReply is that of a server's writer: it takes what is not signed.
func (c *client) TakeReply(w *wire.Reply, r *dns.Msg) (bool, error) {
	if r.IsTsig() != nil {
		return false, nil
	}
	end := wire.EndFor(r, wire.MaxMessage)
	if opt := r.IsEdns0(); opt != nil {
		end.OPT, end.Size = true, 1232
	}
	_, err := c.Write(w.End(end))
	c.taken++
	return true, err
}

func (c *client) Write(p []byte) (int, error) {
	if c.fail > 0 && len(c.messages) >= c.fail {
		return 0, errors.New("connection reset")
	}
	m := new(dns.Msg)
	if err := m.Unpack(p); err != nil {
		return 0, err
	}
	c.messages = append(c.messages, m)
	return len(p), nil
}

// transferOf asks over TCP, and gives what was written, record by record in short, and what ServeDNS returned.
func transferOf(t *testing.T, x *Transfer, c *client, m *dns.Msg) string {
	t.Helper()
	rcode, err := x.ServeDNS(context.Background(), c, m)
	var got []string
	for i, reply := range c.messages {
		if reply.Id != m.Id || !reply.Response || !reply.Authoritative || len(reply.Question) != 1 || reply.Question[0] != m.Question[0] || reply.Rcode != 0 {
			t.Errorf("message %d: %v", i, reply.MsgHdr)
		}
		if (reply.IsEdns0() != nil) != (m.IsEdns0() != nil && i == 0) {
			t.Errorf("message %d: OPT %v", i, reply.IsEdns0())
		}
		for _, rr := range reply.Answer {
			s := strings.TrimSuffix(rr.Header().Name, ".example.org.") + "/" + dns.Type(rr.Header().Rrtype).String()
			if soa, ok := rr.(*dns.SOA); ok {
				s = fmt.Sprint("SOA", soa.Serial)
			}
			got = append(got, s)
		}
	}
	s := strings.Join(got, " ")
	if rcode != 0 || err != nil {
		s += fmt.Sprintf(" %s %v", dns.RcodeToString[rcode], err)
	}
	return strings.TrimSpace(s)
}

func axfr(name string) *dns.Msg { return new(dns.Msg).SetAxfr(name) }
func ixfr(serial uint32) *dns.Msg {
	return new(dns.Msg).SetIxfr("example.org.", serial, "ns.example.org.", "hostmaster.example.org.")
}

// setupOf is the handler of some stanzas.
func setupOf(t *testing.T, input string) *Transfer {
	t.Helper()
	c := caddy.NewTestController("dns", input)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	return dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeNotZone, nil)).(*Transfer)
}

func tcp() *client { return &client{ResponseWriter: test.ResponseWriter{TCP: true}} }

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

func TestSetup(t *testing.T) {
	for _, tc := range []struct{ input, want string }{
		{"transfer {\nto 1.2.3.4 5.6.7.8:1053 [1::2]:34 [fe80::1%eth0]:53\nto *\nsource 2001:db8::53\ntsig Key.example.org hmac-sha512\n}", ""},
		{"transfer", "'to' is required"},
		{"transfer {\nto\n}", "Wrong argument count"},
		{"transfer {\nto ns.example.org\n}", "must specify an IP address: `ns.example.org'"},
		{"transfer {\nto 192.0.2.1:x\n}", "must specify an IP address: `192.0.2.1:x'"},
		{"transfer {\nto *\nsource ns.example.org\n}", `invalid source address "ns.example.org"`},
		{"transfer {\nto *\nsource 192.0.2.1\nsource 192.0.2.2\n}", "source already specified"},
		{"transfer {\nto *\ntsig k md5\n}", `unknown algorithm "md5"`},
		{"transfer {\ninvalid option\n}", `unknown property "invalid"`},
		{"transfer a..b {\nto *\n}", `invalid zone "a..b"`},
	} {
		err := setup(caddy.NewTestController("dns", tc.input))
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "plugin/transfer: ")) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

// secondary answers notifications with rcodes, one after the other; below 0 it says nothing.
func secondary(t *testing.T, secrets map[string]string, rcodes ...int) (addr string, got func() []*dns.Msg) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []*dns.Msg
	s := &dns.Server{PacketConn: conn, TsigSecret: secrets, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		mu.Lock()
		defer mu.Unlock()
		if r.IsTsig() != nil && w.TsigStatus() != nil {
			return
		}
		all = append(all, r)
		rcode := rcodes[min(len(all), len(rcodes))-1]
		if rcode < 0 {
			return
		}
		m := new(dns.Msg).SetRcode(r, rcode)
		if k := r.IsTsig(); k != nil {
			m.SetTsig(k.Hdr.Name, k.Algorithm, 300, time.Now().Unix())
		}
		w.WriteMsg(m)
	})}
	started, done := make(chan struct{}), make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) } // one that has not started cannot be shut down
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() {
		s.Shutdown()
		<-done
	})
	return conn.LocalAddr().String(), func() []*dns.Msg {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// quickly makes tries short.
func quickly(t *testing.T) {
	old := tries
	tries = [...]time.Duration{150 * time.Millisecond, 150 * time.Millisecond, 150 * time.Millisecond}
	t.Cleanup(func() { tries = old })
}

func TestNotify(t *testing.T) {
	logtest.Capture(t)
	quickly(t)
	good, atGood := secondary(t, nil, 0)
	late, atLate := secondary(t, nil, -1, -1, 0)
	silent, atSilent := secondary(t, nil, -1)
	refusing, atRefusing := secondary(t, nil, dns.RcodeRefused)
	x := setupOf(t, fmt.Sprintf("transfer example.org {\nto * %s %s\nsource 127.0.0.1\n}\ntransfer example.net {\nto %s %s %s\n}", good, late, silent, refusing, good))
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if len(atGood()) != 1 || len(atLate()) != 3 {
		t.Errorf("notified %d and %d times", len(atGood()), len(atLate()))
	}
	m := atGood()[0]
	if m.Opcode != dns.OpcodeNotify || !m.Authoritative || m.Question[0].Qtype != dns.TypeSOA || m.Question[0].Name != "example.org." {
		t.Errorf("a notification: %v", m)
	}
	if len(m.Answer) != 0 { // nobody has the zone
		t.Errorf("a notification: %v", m)
	}
	x.Transferers = []Transferer{&channel{}, &source{v: version(t, uint32(1<<31+7))}}
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if all := atGood(); len(all) != 2 || len(all[1].Answer) != 1 || all[1].Answer[0].(*dns.SOA).Serial != 1<<31+7 {
		t.Errorf("notifications: %v", all)
	}
	x.Transferers = nil
	err := x.Notify("example.net.")
	if err == nil || len(strings.Split(err.Error(), "\n")) != 2 || !strings.Contains(err.Error(), fmt.Sprintf("notify for zone \"example.net.\" was not accepted by %q: rcode was \"REFUSED\"", refusing)) || !strings.Contains(err.Error(), fmt.Sprintf("notify for zone \"example.net.\" was not accepted by %q: \"i/o timeout\"", silent)) {
		t.Errorf("got %v", err)
	}
	if len(atGood()) != 3 || len(atRefusing()) != 1 || len(atSilent()) != 3 {
		t.Errorf("notified %d, %d and %d times", len(atGood()), len(atRefusing()), len(atSilent()))
	}
	if err := x.Notify("example.com."); err != nil {
		t.Error(err)
	}
	var nobody *Transfer
	nobody.NotifyLater("example.org.")
	nobody.Changed("example.org.", nil, nil)
	if err := nobody.Notify("example.org."); err != nil {
		t.Error(err)
	}
}

func TestNotifySigned(t *testing.T) {
	logtest.Capture(t)
	quickly(t)
	secrets := map[string]string{"key.example.org.": "c2VjcmV0LW9mLXRoZS10ZXN0"}
	addr, got := secondary(t, secrets, 0)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\ntsig key.example.org hmac-sha512\n}")
	x.findKey = keysOf(secrets)
	if err := x.Notify("example.org."); err != nil {
		t.Error(err)
	}
	if all := got(); len(all) != 1 || all[0].IsTsig() == nil || all[0].IsTsig().Algorithm != dns.HmacSHA512 {
		t.Errorf("got %v", all)
	}
	x.findKey = keysOf(map[string]string{"key.example.org.": "b3RoZXI="})
	if err := x.Notify("example.org."); err == nil {
		t.Error("a notification with a wrong secret was accepted")
	}
}

// TestChangedNotifies: changes are told of in the background, those in a row once.
func TestChangedNotifies(t *testing.T) {
	out := logtest.Capture(t)
	quickly(t)
	addr, got := secondary(t, nil, 0, dns.RcodeServerFailure)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	v := version(t, 1)
	x.Changed("example.org.", nil, v)
	eventually.Holds(t, "a notify", func() bool { return len(got()) == 1 })
	x.Changed("example.org.", v, nil) // gone: nobody needs to know
	x.Changed("example.com.", nil, v)
	x.NotifyLater("example.org.")
	eventually.Holds(t, "a second one", func() bool { return len(got()) == 2 })
	out.Await(t, "Failed sending notifies: notify for zone")
	x.notify.stop()

	block := make(chan struct{})
	var mu sync.Mutex
	told := map[string]int{}
	n := newNotifier(nil, func(_ context.Context, zone string) {
		<-block
		mu.Lock()
		defer mu.Unlock()
		told[zone]++
	})
	for i := range 10 * maxNotifying {
		n.queue(fmt.Sprintf("z%d.", i%(2*maxNotifying)))
	}
	close(block)
	eventually.Holds(t, "all are told", func() bool { mu.Lock(); defer mu.Unlock(); return len(told) == 2*maxNotifying })
	notifiers{target{}: n}.stop()
	for zone, times := range told {
		if times > 2 { // it may have been begun with when it was queued again
			t.Errorf("%s: told %d times", zone, times)
		}
	}
}

// TestNotifyOfMany: of many zones that change at once a secondary is told at once, though another one says nothing.
func TestNotifyOfMany(t *testing.T) {
	logtest.Capture(t)
	good, got := secondary(t, nil, 0)
	silent, atSilent := secondary(t, nil, -1)
	x := setupOf(t, "transfer . {\nto "+silent+" "+good+"\n}")
	x.notify = x.newNotifiers(nil)
	defer func() { x.notify.stop() }()
	const zones = 5 * maxNotifying
	begun := time.Now()
	for i := range zones {
		x.NotifyLater(fmt.Sprintf("z%d.example.", i))
	}
	eventually.Holds(t, "a notify for each zone", func() bool { return len(got()) >= zones })
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := len(atSilent()); n > 2*maxNotifying {
		t.Errorf("one that does not answer is told of %d at once", n)
	}
}

// TestNotifyFailing: of a secondary that does not answer it is told each time, however often the zone changes meanwhile, and never that it
// was notified.
func TestNotifyFailing(t *testing.T) {
	out := logtest.Capture(t)
	quickly(t)
	log.D.Set()
	defer log.D.Clear()
	addr, got := secondary(t, nil, -1)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	defer func() { x.notify.stop() }()
	eventually.Holds(t, "two failures", func() bool {
		x.NotifyLater("example.org.")
		return strings.Count(out.String(), "[WARNING] plugin/transfer: Failed sending notifies: notify for zone") >= 2
	})
	if text := out.String(); len(got()) < 2*len(tries) || strings.Contains(text, "Sent notifies") {
		t.Errorf("asked %d times; logged %s", len(got()), text)
	}
}

// TestNotifyEnds: the end of the server does not wait for secondaries that say nothing.
func TestNotifyEnds(t *testing.T) {
	logtest.Capture(t)
	addr, got := secondary(t, nil, -1)
	x := setupOf(t, "transfer example.org {\nto "+addr+"\n}")
	x.notify = x.newNotifiers(nil)
	x.NotifyLater("example.org.")
	eventually.Holds(t, "a notify", func() bool { return len(got()) > 0 })
	begin := time.Now()
	x.notify.stop()
	if d := time.Since(begin); d > time.Second {
		t.Errorf("it took %s", d)
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
