package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// zoneOf is the first zone with a fault, and with a denial of a kind unless that is empty.
func (l *signedLab) zoneOf(t *testing.T, fault, denial string) string {
	t.Helper()
	for _, z := range l.zones {
		if z.fault.name == fault && (denial == "" || z.denial == denial) {
			return z.name
		}
	}
	t.Fatalf("no zone with fault %q and %q", fault, denial)
	return ""
}

// said is what a client with DO hears, as return code, AD and info codes.
func said(t *testing.T, server, name string, typ uint16, change func(*dns.Msg)) (text string, m *dns.Msg) {
	t.Helper()
	q := new(dns.Msg).SetQuestion(name, typ)
	q.SetEdns0(1232, true)
	if change != nil {
		change(q)
	}
	c := dns.Client{Timeout: 12 * time.Second}
	m, _, err := c.Exchange(q, server)
	if err == nil && m.Truncated {
		c.Net = "tcp"
		m, _, err = c.Exchange(q, server)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", name, dns.Type(typ), err)
	}
	if m.Rcode != dns.RcodeSuccess && (m.Authoritative || !m.RecursionAvailable) {
		t.Errorf("%s %s: a resolver has no AA, and RA in what fails, too:\n%v", name, dns.Type(typ), m)
	}
	text = fmt.Sprint(dns.RcodeToString[m.Rcode], " ", map[bool]int{true: 1}[m.AuthenticatedData])
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				text += fmt.Sprint(" ", e.InfoCode)
			}
		}
	}
	return text, m
}

// upstream is how many queries this process has sent to servers of zones.
func upstream(t *testing.T) float64 {
	t.Helper()
	return counted(t, "coredns_recurse_queries_total")
}

// counted is the sum of the counters of a name.
func counted(t *testing.T, name string) (n float64) {
	t.Helper()
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// serve starts a server with the block given, and returns its address.
func serve(t *testing.T, port int, block string) string {
	t.Helper()
	i, udp, _, err := test.CoreDNSServerAndPorts(fmt.Sprintf(".:%d {\n bind 127.0.0.1\n errors\n%s\n}\n", port, block))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	return udp
}

func (l *signedLab) recurse(more string) string {
	return fmt.Sprintf(" recurse {\n  hints %s\n  allow_servers 127.0.0.0/8\n  family ipv4\n  %s\n }", filepath.Join(l.dir, "hints"), more)
}

func (l *signedLab) validator(more string) string {
	return fmt.Sprintf(" validator {\n  anchor %q\n  signal off\n  %s\n }\n", strings.ReplaceAll(l.root, "\t", " "), more)
}

// What a validating resolver says of each kind of zone: return code, AD, and why (RFC 4035, 8914). Zones are signed and
// served by BIND's programs.
func TestValidation(t *testing.T) {
	if !namespaced(t, "named", "dnssec-signzone", "dnssec-keygen", "dnssec-dsfromkey") {
		return
	}
	l := buildSigned(t, chosen(t, "DS algorithm 12", "DS digest 3", "one DS of two wrong", "expired", "future", "www unsigned", "keys unsigned", "wrong DS",
		"www changed", "not signed", "no denials", "60 iterations"))
	l.authorities(t)
	ours := serve(t, 5401, l.validator("")+l.recurse("aggressive nsec3"))
	awaitSigned(t, l, ours)
	z := func(fault string) string { return l.zoneOf(t, fault, "") }
	for _, c := range []struct {
		what, name string
		typ        uint16
		want       string
	}{
		{"an algorithm that is unknown", "www." + z("DS algorithm 12"), dns.TypeA, "NOERROR 0 1"},
		{"a digest that is unknown", "www." + z("DS digest 3"), dns.TypeA, "NOERROR 0 2"},
		{"a wrong DS beside a right one", "www." + z("one DS of two wrong"), dns.TypeA, "NOERROR 1"},
		{"expired", "www." + z("expired"), dns.TypeA, "SERVFAIL 0 7"},
		{"not yet valid", "www." + z("future"), dns.TypeA, "SERVFAIL 0 8"},
		{"no RRSIG", "www." + z("www unsigned"), dns.TypeA, "SERVFAIL 0 10"},
		{"no RRSIG of keys", "www." + z("keys unsigned"), dns.TypeA, "SERVFAIL 0 10"},
		{"no key matches", "www." + z("wrong DS"), dns.TypeA, "SERVFAIL 0 9"},
		{"changed", "www." + z("www changed"), dns.TypeA, "SERVFAIL 0 6"},
		{"a signed zone that is not signed", "www." + z("not signed"), dns.TypeA, "SERVFAIL 0 9"},
		{"unsigned delegation", "www.sub." + l.zoneOf(t, "", "nsec"), dns.TypeA, "NOERROR 0"},
		{"unsigned delegation, NSEC3", "www.sub." + l.zoneOf(t, "", "nsec3"), dns.TypeA, "NOERROR 0"},
		{"unsigned delegation, opt-out", "www.sub." + l.zoneOf(t, "", "opt-out"), dns.TypeA, "NOERROR 0"},
		{"unsigned delegation, no proof", "www.sub." + z("no denials"), dns.TypeA, "SERVFAIL 0 12"},
		{"wildcard", "x.wild." + l.zoneOf(t, "", "nsec"), dns.TypeA, "NOERROR 1"},
		{"wildcard CNAME", "x.cn." + l.zoneOf(t, "", "nsec3"), dns.TypeA, "NOERROR 1"},
		{"wildcard NODATA", "x.wild." + l.zoneOf(t, "", "nsec3"), dns.TypeMX, "NOERROR 1"},
		{"wildcard, no proof", "x.wild." + z("no denials"), dns.TypeA, "SERVFAIL 0 12"},
		{"NODATA, no proof", "www." + z("no denials"), dns.TypeMX, "SERVFAIL 0 12"},
		{"NODATA, NSEC", "www." + l.zoneOf(t, "", "nsec"), dns.TypeMX, "NOERROR 1"},
		{"ENT, NSEC", "b.c." + l.zoneOf(t, "", "nsec"), dns.TypeA, "NOERROR 1"},
		{"NXDOMAIN, NSEC", "no." + l.zoneOf(t, "", "nsec"), dns.TypeA, "NXDOMAIN 1"},
		{"NODATA, NSEC3", "www." + l.zoneOf(t, "", "nsec3"), dns.TypeMX, "NOERROR 1"},
		{"ENT, NSEC3", "b.c." + l.zoneOf(t, "", "nsec3"), dns.TypeA, "NOERROR 1"},
		{"NXDOMAIN, NSEC3", "no." + l.zoneOf(t, "", "nsec3"), dns.TypeA, "NXDOMAIN 1"},
		{"NODATA, black lies", "www." + l.zoneOf(t, "", blackLies), dns.TypeMX, "NOERROR 1"},
		{"ENT, black lies", "b.c." + l.zoneOf(t, "", blackLies), dns.TypeA, "NOERROR 1"},
		{"a name that does not exist, black lies", "no." + l.zoneOf(t, "", blackLies), dns.TypeA, "NOERROR 1"},
		{"NODATA, compact", "www." + l.zoneOf(t, "", compact), dns.TypeMX, "NOERROR 1"},
		{"ENT, compact", "b.c." + l.zoneOf(t, "", compact), dns.TypeA, "NOERROR 1"},
		{"a name that does not exist, compact", "no." + l.zoneOf(t, "", compact), dns.TypeA, "NOERROR 1"},
		{"wildcard, compact", "x.wild." + l.zoneOf(t, "", compact), dns.TypeA, "NOERROR 1"},
		{"DS of the root", ".", dns.TypeDS, "NOERROR 1"},
		{"NXDOMAIN, opt-out", "no." + l.zoneOf(t, "", "opt-out"), dns.TypeA, "NXDOMAIN 0"},
		{"alias into an unsigned zone", "insec." + l.zoneOf(t, "", "nsec"), dns.TypeA, "NOERROR 0"},
		{"alias to what is bogus", "far." + l.before(z("expired")), dns.TypeA, "SERVFAIL 0 7"},
		{"DS where both sides are at one server", "sec." + l.zoneOf(t, "", "nsec"), dns.TypeDS, "NOERROR 1"},
		{"no DS, of the parent", "sub." + l.zoneOf(t, "", "nsec3"), dns.TypeDS, "NOERROR 1"},
		{"DNSKEY", l.zoneOf(t, "", "nsec"), dns.TypeDNSKEY, "NOERROR 1"},
		{"ANY", "www." + l.zoneOf(t, "", "nsec3"), dns.TypeANY, "NOERROR 1"},
		{"RRSIG", "www." + l.zoneOf(t, "", "nsec3"), dns.TypeRRSIG, "NOERROR 0"},
		{"a type of no name", "www." + l.zoneOf(t, "", "nsec3"), 65280, "NOERROR 1"},
		{"20 iterations", "no." + l.zoneOf(t, "", "nsec3 20"), dns.TypeA, "NXDOMAIN 1"},
		{"60 iterations", "no." + z("60 iterations"), dns.TypeA, "NXDOMAIN 0 27"},
	} {
		got, _ := said(t, ours, c.name, c.typ, nil)
		if got = strings.TrimSuffix(got, " 29"); got != c.want { // a record of another denial may have been enough
			t.Errorf("%s: %s %s: %s, want %s", c.what, c.name, dns.Type(c.typ), got, c.want)
		}
	}
	for _, s := range l.zones { // each algorithm
		if s.fault.name == "" {
			if got, _ := said(t, ours, "www."+s.name, dns.TypeA, nil); got != "NOERROR 1" {
				t.Errorf("algorithm %s: %s", s.algorithm, got)
			}
		}
	}
	t.Run("flags", func(t *testing.T) { flags(t, ours, "www."+l.zoneOf(t, "", "nsec"), "www."+z("www changed")) })
	t.Run("aggressive", func(t *testing.T) {
		for denial, want := range map[string]string{"nsec": "NXDOMAIN 1 29", "nsec3": "NXDOMAIN 1 29", "opt-out": "NXDOMAIN 0"} {
			aggressive(t, ours, l.zoneOf(t, "", denial), want)
		}
	})
	t.Run("cut", func(t *testing.T) {
		plain, zone := serve(t, 5403, l.validator("")+l.recurse("aggressive off")), l.zoneOf(t, "", "nsec3")
		for _, name := range []string{"gone.", "a.gone.", "b.a.gone."} {
			n := upstream(t)
			got, _ := said(t, plain, name+zone, dns.TypeA, nil)
			if asked := upstream(t) - n; got != "NXDOMAIN 1" || name != "gone." && asked > 0 {
				t.Errorf("%s: %s after %v queries", name, got, asked)
			}
		}
	})
	t.Run("others", func(t *testing.T) { l.others(t) })
}

// before is the zone whose aliases lead to a zone.
func (l *signedLab) before(zone string) string {
	for i, z := range l.zones {
		if l.zones[(i+1)%len(l.zones)].name == zone {
			return z.name
		}
	}
	return ""
}

// flags is AD and CD: AD goes to who sets AD or DO, and what is bogus to who sets CD, before and after others asked.
func flags(t *testing.T, ours, good, bad string) {
	for what, c := range map[string]struct {
		change func(*dns.Msg)
		want   string
	}{
		"neither": {func(m *dns.Msg) { m.Extra = nil }, "NOERROR 0"}, "AD": {func(m *dns.Msg) { m.Extra, m.AuthenticatedData = nil, true }, "NOERROR 1"},
		"CD": {func(m *dns.Msg) { m.CheckingDisabled = true }, "NOERROR 0"},
	} {
		got, m := said(t, ours, good, dns.TypeA, c.change)
		if got != c.want || what != "CD" && len(m.Answer) != 1 {
			t.Errorf("%s: %s with %d records, want %s", what, got, len(m.Answer), c.want)
		}
	}
	for i, cd := range []bool{true, false, true, false} {
		got, _ := said(t, ours, bad, dns.TypeTXT, func(m *dns.Msg) { m.CheckingDisabled = cd })
		if got != "NOERROR "+map[bool]string{true: "0", false: "1"}[cd] {
			t.Errorf("TXT %d: %s", i, got)
		}
		want := map[bool]string{true: "NOERROR 0", false: "SERVFAIL 0 6"}[cd]
		if got, _ := said(t, ours, bad, dns.TypeA, func(m *dns.Msg) { m.CheckingDisabled = cd }); got != want {
			t.Errorf("CD %v, %d: %s, want %s", cd, i, got, want)
		}
	}
}

// aggressive has names asked that do not exist: but for the first few hardly any costs a query. One may lie in a gap which
// is so small that none lay there before, and on a busy machine a query is sent again.
func aggressive(t *testing.T, ours, zone, want string) {
	last := ""
	for i := range 200 { // until all of the few records are known
		last, _ = said(t, ours, fmt.Sprintf("r%dx.%s", i*7919%10000, zone), dns.TypeA, nil)
	}
	n := upstream(t)
	for i := range 20 {
		last, _ = said(t, ours, fmt.Sprintf("s%dx.%s", i*104729%1000, zone), dns.TypeA, nil)
	}
	if asked := upstream(t) - n; last != want || strings.HasSuffix(want, "29") && asked > 4 || want == "NXDOMAIN 0" && asked < 20 {
		t.Errorf("%s: %s after %v queries, want %s", zone, last, asked, want)
	}
}

// others is the validator with other options and other plugins below.
func (l *signedLab) others(t *testing.T) {
	good, broken := l.zoneOf(t, "", "nsec"), l.zoneOf(t, "wrong DS", "")
	strip := func(change func(*dns.Msg)) string { return l.forwarder(t, change) }
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("search no.test "+good+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bare := func(m *dns.Msg) { m.Answer, m.Ns = unsigned(m.Answer), unsigned(m.Ns) }
	lie := func(m *dns.Msg) {
		for _, rr := range m.Answer {
			if a, ok := rr.(*dns.A); ok {
				a.A[3]++
			}
		}
	}
	port := 5410
	for what, c := range map[string]struct{ block, name, want string }{
		"a private address":                   {l.validator("") + l.recurse("private_addresses 192.0.2.0/24"), "www." + good, "NOERROR 0 17"},
		"a private address, cached":           {" cache\n" + l.validator("") + l.recurse("private_addresses 192.0.2.0/24"), "www." + good, "NOERROR 0 17"},
		"a private address of an alias":       {l.validator("") + l.recurse("private_addresses 192.0.2.0/24"), "alias." + good, "NOERROR 0 17"},
		"a private address that is excepted":  {l.validator("") + l.recurse("private_addresses 192.0.2.0/24 except "+good), "www." + good, "NOERROR 1"},
		"a private address, not validated":    {strings.Replace(l.validator(""), "validator", "validator other.test", 1) + l.recurse("private_addresses 192.0.2.0/24"), "www." + good, "NOERROR 0 17"},
		"NTA":                                 {l.validator("nta "+broken) + l.recurse(""), "www." + broken, "NOERROR 0 33"},
		"permissive":                          {l.validator("permissive") + l.recurse(""), "www." + broken, "NOERROR 0 6"},
		"40 days later":                       {l.validator(fmt.Sprint("validation_time ", time.Now().Add(40*24*time.Hour).Unix())) + l.recurse(""), "www." + good, "SERVFAIL 0 7"},
		"an algorithm that is taken out":      {l.validator("disable_algorithm 13") + l.recurse(""), "www." + good, "NOERROR 0 1"},
		"forwarder":                           {l.validator("") + " forward . " + strip(nil), "www." + good, "NOERROR 1"},
		"forwarder that strips":               {l.validator("") + " forward . " + strip(bare), "www." + good, "SERVFAIL 0 10"},
		"forwarder that lies":                 {l.validator("") + " forward . " + strip(lie), "www." + good, "SERVFAIL 0 6"},
		"a name that is rewritten":            {" rewrite stop name alias.test www." + good + "\n" + l.validator("") + l.recurse(""), "alias.test.", "NOERROR 0"},
		"a name that is rewritten, and bogus": {" rewrite stop name alias.test www." + broken + "\n" + l.validator("") + l.recurse(""), "alias.test.", "SERVFAIL 0 9"},
		"a name that is completed":            {" autopath . " + conf + "\n" + l.validator("") + l.recurse(""), "www.no.test.", "NOERROR 0"},
		"one of two forwarders lies":          {l.validator("") + " forward . " + strip(lie) + " " + strip(nil) + " {\n  policy sequential\n }", "www." + good, "NOERROR 1"},
		"one of two forwarders strips":        {l.validator("") + " forward . " + strip(bare) + " " + strip(nil) + " {\n  policy sequential\n }", "www." + good, "NOERROR 1"},
		"two of three forwarders lie":         {l.validator("") + " forward . " + strip(lie) + " " + strip(lie) + " " + strip(nil) + " {\n  policy sequential\n }", "www." + good, "NOERROR 1"},
		"an inner zone":                       {l.validator("nta corp") + " forward corp " + l.inner(t) + "\n" + l.recurse(""), "www.corp.", "NOERROR 0 33"},
	} {
		port++
		if got, _ := said(t, serve(t, port, c.block), c.name, dns.TypeA, nil); got != c.want {
			t.Errorf("%s: %s: %s, want %s", what, c.name, got, c.want)
		}
	}
	port++
	got, _ := said(t, serve(t, port, l.validator("")+" forward corp "+l.inner(t)+"\n"+l.recurse("")), "www.corp.", dns.TypeA, nil)
	if !strings.HasPrefix(got, "SERVFAIL 0 ") {
		t.Errorf("an inner zone that the root denies: %s", got)
	}
	port++
	for name, want := range map[string]string{"www." + good: "NOERROR 0", "www.sub." + good: "NOERROR 0", "www." + broken: "SERVFAIL 0 9"} {
		got, m := said(t, serve(t, port, " dns64 {\n  allow_ipv4\n }\n"+l.validator("")+l.recurse("")), name, dns.TypeAAAA, nil)
		if port++; got != want || m.Rcode == 0 && len(m.Answer) == 0 {
			t.Errorf("dns64, %s: %s with %d records, want %s", name, got, len(m.Answer), want)
		}
	}
}

// forwarder is a resolver of the laboratory whose answers are changed on their way.
func (l *signedLab) forwarder(t *testing.T, change func(*dns.Msg)) string {
	t.Helper()
	below := serve(t, 0, l.recurse(""))
	return reply(t, func(q *dns.Msg) *dns.Msg {
		c := dns.Client{Timeout: 5 * time.Second, UDPSize: 4096}
		m, _, err := c.Exchange(q, below)
		if err == nil && m.Truncated {
			c.Net = "tcp"
			m, _, err = c.Exchange(q, below)
		}
		if err != nil {
			return nil
		}
		if change != nil {
			change(m)
		}
		return m
	})
}

// inner is a server of a zone that no parent knows.
func (l *signedLab) inner(t *testing.T) string {
	return reply(t, func(q *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			rr, _ := dns.NewRR(q.Question[0].Name + " 300 IN A 192.0.2.7")
			m.Answer = []dns.RR{rr}
		}
		return m
	})
}

// reply serves what f says, over UDP and TCP.
func reply(t *testing.T, f func(*dns.Msg) *dns.Msg) string {
	t.Helper()
	h := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		if m := f(q); m != nil {
			_ = w.WriteMsg(m)
		}
	})
	return both(t, h)
}

func unsigned(rrs []dns.RR) (kept []dns.RR) {
	for _, rr := range rrs {
		if t := rr.Header().Rrtype; t != dns.TypeRRSIG && t != dns.TypeNSEC && t != dns.TypeNSEC3 {
			kept = append(kept, rr)
		}
	}
	return kept
}

// both serves at one port over UDP and TCP until the test ends.
func both(t *testing.T, h dns.Handler) string {
	t.Helper()
	for range 20 {
		p, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s, err := net.Listen("tcp", p.LocalAddr().String())
		if err != nil { // the port is taken there
			p.Close()
			continue
		}
		for _, d := range []*dns.Server{{PacketConn: p, Handler: h}, {Listener: s, Handler: h}} {
			t.Cleanup(func() { _ = d.Shutdown() })
			go func() { _ = d.ActivateAndServe() }()
		}
		return p.LocalAddr().String()
	}
	t.Fatal("no port is free for both")
	return ""
}
