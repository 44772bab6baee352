// Package migration runs the configurations of other servers that docs/MIGRATION.md has, with those servers, and the
// Corefiles beside them: the same questions get the same answers.
//
//	the page's ```text ──▶ dnsmasq, named, unbound ─┐
//	                                                ├─▶ the same questions, the same answers
//	the page's ```corefile ──▶ this server ─────────┘
//
// All run in a network namespace of the test's own, where the upstreams of the page (192.0.2.53 and others) are ours.
// Start at TestMigration.
package migration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// inside says that the test runs in its namespace.
const inside = "COREDNS_MIGRATION"

// Ports of this server and of the other one; the upstreams have 53.
const ours, theirs = "5300", "5400"

// authority is that of lab.example.org.
const authority = "10.53.0.53"

// key is the secret that the page shows.
const key = "bm90LWEtcmVhbC1zZWNyZXQtYnV0LWZpbmU="

// case_ is one server of the page: how it is started with the file, and what is asked.
type case_ struct {
	section string
	// run is the command; its words FILE and DIR are replaced.
	run []string
	// more is written behind the page's text: what only this test needs, such as the port.
	more      string
	questions []question
}

type question struct {
	name string
	typ  uint16
	// want is what both answer, in words that their answers have; none: an empty answer.
	want string
}

var cases = []case_{
	{"dnsmasq", []string{"dnsmasq", "--keep-in-foreground", "--conf-file=FILE", "--port=" + theirs, "--user=root", "--pid-file", "--no-hosts"}, "", []question{
		{"printer.example.org.", dns.TypeA, "192.0.2.7"},
		{"7.2.0.192.in-addr.arpa.", dns.TypePTR, "printer.example.org."},
		{"nas.example.org.", dns.TypeA, "192.0.2.8"},
		{"8.2.0.192.in-addr.arpa.", dns.TypePTR, "nas.example.org."},
		{"ads.example.net.", dns.TypeA, "0.0.0.0"},
		{"ads.example.net.", dns.TypeAAAA, ""},
		{"printer.example.org.", dns.TypeAAAA, ""},
		{"deep.ads.example.net.", dns.TypeA, "0.0.0.0"},
		{"www.example.com.", dns.TypeA, "198.51.100.53"},
		{"www.example.com.", dns.TypeAAAA, ""},
		{"no.example.com.", dns.TypeA, "NXDOMAIN"},
		{"www.corp.example.org.", dns.TypeA, "198.51.100.10"},
		{"no.corp.example.org.", dns.TypeA, "NXDOMAIN"},
	}},
	{"BIND", []string{"named", "-4", "-g", "-n", "1", "-p", theirs, "-c", "FILE"}, "options { directory \"DIR\"; pid-file none; };\n", []question{
		{"www.example.org.", dns.TypeA, "192.0.2.80"},
		{"www.example.org.", dns.TypeAAAA, ""},
		{"alias.example.org.", dns.TypeA, "www.example.org. 192.0.2.80"},
		{"x.wild.example.org.", dns.TypeTXT, "wildcard"},
		{"no.example.org.", dns.TypeA, "NXDOMAIN"},
		{"example.org.", dns.TypeSOA, "2026"},
		{"www.example.net.", dns.TypeA, "192.0.2.81"},
		{"no.example.net.", dns.TypeA, "NXDOMAIN"},
		{"www.example.com.", dns.TypeA, "REFUSED"},
	}},
	{"unbound", []string{"unbound", "-d", "-c", "FILE"},
		"server:\n port: " + theirs + "\n chroot: \"\"\n username: \"\"\n directory: \"DIR\"\n pidfile: \"\"\n use-syslog: no\n module-config: iterator\n do-ip6: no\n", []question{
			{"printer.example.org.", dns.TypeA, "192.0.2.7"},
			{"www.corp.example.org.", dns.TypeA, "198.51.100.10"},
			{"no.corp.example.org.", dns.TypeA, "NXDOMAIN"},
			{"www.lab.example.org.", dns.TypeA, "198.51.100.53"},
			{"no.lab.example.org.", dns.TypeA, "NXDOMAIN"},
			{"www.lab.example.org.", dns.TypeAAAA, ""},
			{"inner.lab.example.org.", dns.TypeA, ""},
		}},
}

func TestMigration(t *testing.T) {
	if !namespaced(t) {
		return
	}
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	upstreams(t)
	dnsserver.Port = ours
	for _, tc := range cases {
		t.Run(tc.section, func(t *testing.T) {
			if _, err := exec.LookPath(tc.run[0]); err != nil {
				t.Skipf("%s is not installed: apt-get install dnsmasq-base bind9 unbound", tc.run[0])
			}
			text, corefile := fenced(t, string(page), tc.section, "text"), fenced(t, string(page), tc.section, "corefile")
			dir := t.TempDir()
			write(t, dir, "hosts.lan", "192.0.2.8 nas.example.org\n")
			write(t, dir, "db.example.org", zone("example.org.", "192.0.2.80"))
			there := strings.NewReplacer("/etc/hosts.lan", filepath.Join(dir, "hosts.lan"), "db.example", filepath.Join(dir, "db.example"), "/var/lib/coredns", dir)
			if tc.section == "unbound" { // recurse asks no addresses of documents: the authority has another one
				text, corefile = strings.ReplaceAll(text, "192.0.2.53", authority), strings.ReplaceAll(corefile, "192.0.2.53", authority)
			}
			more := strings.ReplaceAll(tc.more, "DIR", dir)
			if more, ok := strings.CutPrefix(more, "options { "); ok { // which may stand there but once
				text = strings.Replace(text, "options { ", "options { "+strings.TrimSuffix(more, " };\n")+" ", 1)
			} else {
				text += more
			}
			peer(t, dir, tc.run, write(t, dir, "their.conf", there.Replace(text)))
			i, err := test.CoreDNSServer(there.Replace(corefile))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				i.ShutdownCallbacks()
				test.CoreDNSServerStop(i)
			}()
			for _, q := range tc.questions {
				got, want := answer(t, ours, q), answer(t, theirs, q)
				if got != want {
					t.Errorf("%s %s: we answer %q, %s %q", q.name, dns.TypeToString[q.typ], got, tc.run[0], want)
				}
				for _, word := range strings.Fields(q.want) {
					if !strings.Contains(got, word) {
						t.Errorf("%s %s: no %s in %q", q.name, dns.TypeToString[q.typ], word, got)
					}
				}
				if q.want == "" && got != "NOERROR" {
					t.Errorf("%s %s: %q is not empty", q.name, dns.TypeToString[q.typ], got)
				}
			}
			if tc.section == "BIND" {
				for _, port := range []string{ours, theirs} {
					if n := transfer(t, port, true); n < 6 {
						t.Errorf("port %s: a transfer with the key has %d records", port, n)
					}
					if n := transfer(t, port, false); n != 0 {
						t.Errorf("port %s: a transfer without the key has %d records", port, n)
					}
				}
			}
		})
	}
}

// namespaced runs the test once more in a network namespace where the page's addresses are, and reports true there.
func namespaced(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	for _, p := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install util-linux iproute2", p)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace of one's own takes root")
	}
	const script = `ip link set lo up && for a in 192.0.2.53 192.0.2.10 192.0.2.3 ` + authority + `; do ip addr add $a/32 dev lo; done && exec "$0" "$@"`
	cmd := exec.Command("unshare", "-n", "sh", "-c", script, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// fenced is the first block of a kind in a section of the page.
func fenced(t *testing.T, page, section, kind string) string {
	t.Helper()
	_, text, ok := strings.Cut(page, "\n## "+section+"\n")
	if text, _, _ = strings.Cut(text, "\n## "); !ok {
		t.Fatalf("the page has no section %s", section)
	}
	_, text, ok = strings.Cut(text, "```"+kind+"\n")
	text, _, end := strings.Cut(text, "```\n")
	if !ok || !end {
		t.Fatalf("section %s has no block %s", section, kind)
	}
	return text
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// zone is a small zone, whose www has an address.
func zone(origin, address string) string {
	return fmt.Sprintf(`$ORIGIN %s
$TTL 300
@ SOA ns hostmaster 2026 3600 600 86400 60
@ NS ns
ns A 192.0.2.3
www A %s
alias CNAME www
*.wild TXT wildcard
`, origin, address)
}

// upstreams are those of the page: two forwarders, which know all names but no.*, and a primary of example.net.
func upstreams(t *testing.T) {
	t.Helper()
	for _, at := range []string{"192.0.2.53", "192.0.2.10", authority} {
		last := at[strings.LastIndex(at, ".")+1:]
		listen(t, at, func(r *dns.Msg) *dns.Msg {
			m := new(dns.Msg).SetReply(r)
			m.Authoritative, m.RecursionAvailable = true, true
			name := strings.ToLower(r.Question[0].Name) // recurse mixes cases
			soa, err := dns.NewRR("lab.example.org. 60 IN SOA ns hostmaster 1 3600 600 86400 60")
			if err != nil {
				panic(err)
			}
			switch qtype := r.Question[0].Qtype; {
			case strings.HasPrefix(name, "no."):
				m.Rcode, m.Ns = dns.RcodeNameError, []dns.RR{soa}
			case qtype == dns.TypeA:
				address := "198.51.100." + last
				if strings.HasPrefix(name, "inner.") { // which both resolvers keep from clients
					address = "10.0.0.1"
				}
				rr, err := dns.NewRR(r.Question[0].Name + " 60 IN A " + address)
				if err != nil {
					panic(err)
				}
				m.Answer = []dns.RR{rr}
			default:
				m.Ns = []dns.RR{soa}
			}
			return m
		})
	}
	var rrs []dns.RR
	z := dns.NewZoneParser(strings.NewReader(zone("example.net.", "192.0.2.81")), "", "")
	for rr, ok := z.Next(); ok; rr, ok = z.Next() {
		rrs = append(rrs, rr)
	}
	listen(t, "192.0.2.3", func(r *dns.Msg) *dns.Msg {
		m := new(dns.Msg).SetReply(r)
		m.Authoritative, m.Answer = true, rrs[:1]
		if qtype := r.Question[0].Qtype; qtype == dns.TypeAXFR || qtype == dns.TypeIXFR {
			m.Answer = append(slices.Clone(rrs), rrs[0])
		}
		return m
	})
}

// listen answers at an address by f.
func listen(t *testing.T, address string, f func(*dns.Msg) *dns.Msg) {
	t.Helper()
	h := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) { _ = w.WriteMsg(f(r)) })
	at := net.JoinHostPort(address, "53")
	pc, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: h}, {Listener: ln, Handler: h}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
}

// peer starts the other server in a folder, and waits until it answers.
func peer(t *testing.T, dir string, run []string, file string) {
	t.Helper()
	var words []string
	for _, w := range run[1:] {
		words = append(words, strings.ReplaceAll(w, "FILE", file))
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(run[0], words...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s said:\n%s", run[0], text)
		}
	})
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		c := dns.Client{Timeout: time.Second}
		if _, _, err := c.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA), "127.0.0.1:"+theirs); err == nil {
			return
		}
	}
	t.Fatalf("%s does not answer", run[0])
}

// answer is what the server at a port answers: return code and records without their TTLs. A zone that is still on its
// way is waited for.
func answer(t *testing.T, port string, q question) (text string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		c := dns.Client{Timeout: 2 * time.Second}
		m, _, err := c.Exchange(new(dns.Msg).SetQuestion(q.name, q.typ), "127.0.0.1:"+port)
		if err == nil && m.Rcode != dns.RcodeServerFailure || time.Now().After(end) {
			if err != nil {
				return err.Error()
			}
			lines := []string{}
			for _, rr := range m.Answer {
				rr.Header().Ttl = 0
				lines = append(lines, strings.Join(strings.Fields(rr.String()), " "))
			}
			slices.Sort(lines)
			return strings.TrimSpace(dns.RcodeToString[m.Rcode] + " " + strings.Join(lines, ", "))
		}
	}
}

// transfer is how many records a transfer of example.org has, with the page's key or without.
func transfer(t *testing.T, port string, signed bool) (n int) {
	t.Helper()
	m := new(dns.Msg).SetAxfr("example.org.")
	tr := new(dns.Transfer)
	if signed {
		tr.TsigSecret = map[string]string{"transfer.": key}
		m.SetTsig("transfer.", dns.HmacSHA256, 300, time.Now().Unix())
	}
	all, err := tr.In(m, "127.0.0.1:"+port)
	if err != nil {
		return 0
	}
	for e := range all {
		if e.Error == nil {
			n += len(e.RR)
		}
	}
	return n
}
