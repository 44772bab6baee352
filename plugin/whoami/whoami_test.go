package whoami

import (
	"net"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// mapped has a client with an IPv4 address that is written as IPv6.
type mapped struct{ test.ResponseWriter }

func (mapped) RemoteAddr() net.Addr {
	return &net.UDPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 40212}
}

func TestBothLanes(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 62)+".", 4)
	for _, tc := range []struct {
		w     dns.ResponseWriter
		name  string
		class uint16
		want  []string
	}{
		{&test.ResponseWriter{}, "Example.org.", dns.ClassINET, []string{"Example.org. 0 IN A 10.240.0.1", "_udp.Example.org. 0 IN SRV 0 0 40212 ."}},
		{&test.ResponseWriter{TCP: true}, "example.org.", dns.ClassINET, []string{"example.org. 0 IN A 10.240.0.1", "_tcp.example.org. 0 IN SRV 0 0 40212 ."}},
		{&test.ResponseWriter6{}, "example.org.", dns.ClassINET, []string{"example.org. 0 IN AAAA fe80::42:ff:feca:4c65", "_udp.example.org. 0 IN SRV 0 0 40212 ."}},
		{&mapped{}, "example.org.", dns.ClassINET, []string{"example.org. 0 IN A 192.0.2.1", "_udp.example.org. 0 IN SRV 0 0 40212 ."}},
		{&test.ResponseWriter{}, ".", dns.ClassINET, []string{". 0 IN A 10.240.0.1", "_udp. 0 IN SRV 0 0 40212 ."}},
		{&test.ResponseWriter{}, "example.org.", dns.ClassCHAOS, []string{"example.org. 0 CH A 10.240.0.1", "_udp.example.org. 0 CH SRV 0 0 40212 ."}},
		{&test.ResponseWriter{}, long, dns.ClassINET, []string{long + " 0 IN A 10.240.0.1"}},
	} {
		query := new(dns.Msg).SetQuestion(tc.name, dns.TypeMX)
		query.Question[0].Qclass = tc.class
		rec := dnstest.NewRecorder(tc.w)
		rc, err := Whoami{}.ServeDNS(t.Context(), rec, query)
		if rc != dns.RcodeSuccess || err != nil {
			t.Fatalf("%s: got %d, %v", tc.name, rc, err)
		}
		check(t, rec.Msg, tc.name, tc.want)
		if tc.class != dns.ClassINET {
			continue
		}
		packet, err := query.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		q.Peer = wire.PeerOf(tc.w.RemoteAddr(), tc.w.LocalAddr())
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		var w wire.Reply
		w.Reset(make([]byte, 512))
		if out := (Whoami{}).ServeWire(t.Context(), &w, &q); out != wire.Done || w.Writer() != "whoami" {
			t.Errorf("got %v by %q", out, w.Writer())
		}
		m, err := w.Msg(query)
		if err != nil {
			t.Fatal(err)
		}
		check(t, m, tc.name, tc.want)
	}
}

func check(t *testing.T, m *dns.Msg, name string, want []string) {
	t.Helper()
	var got []string
	for _, rr := range m.Extra {
		got = append(got, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(m.Answer)+len(m.Ns) > 0 {
		t.Errorf("%s: got %q, want %q", name, got, want)
	}
	if !m.Authoritative || !m.Response || m.Question[0].Name != name {
		t.Errorf("%s: got header %v", name, m)
	}
}

func TestNoAllocations(t *testing.T) {
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	q.Peer = wire.PeerOf((&test.ResponseWriter6{}).RemoteAddr(), nil)
	var w wire.Reply
	buf := make([]byte, 512)
	if n := testing.AllocsPerRun(100, func() {
		q.Parse(packet)
		w.Reset(buf)
		Whoami{}.ServeWire(t.Context(), &w, &q)
		w.Finish(&q, 1232)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNoQuestion(t *testing.T) {
	if rc, err := (Whoami{}).ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeServerFailure || err == nil {
		t.Errorf("got %d, %v", rc, err)
	}
}

func TestSetup(t *testing.T) {
	for input, wantErr := range map[string]string{
		"whoami": "", "whoami\nwhoami": "",
		"whoami example.org": "Wrong argument count",
		"whoami {\nx\n}":     "unknown property 'x'",
	} {
		c := caddy.NewTestController("dns", input)
		err := setup(c)
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: got error %v, want %q", input, err, wantErr)
		}
		if n := len(dnsserver.GetConfig(c).Plugin); (n == 1) != (wantErr == "") {
			t.Errorf("%q: %d plugins", input, n)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkServeWire(b *testing.B) {
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	q.Peer = wire.PeerOf((&test.ResponseWriter{}).RemoteAddr(), nil)
	var w wire.Reply
	buf := make([]byte, 512)
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(packet)
		w.Reset(buf)
		Whoami{}.ServeWire(b.Context(), &w, &q)
		w.Finish(&q, 1232)
	}
}
