package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

const validatingConf = `server:
 interface: 127.0.0.1@5402
 do-daemonize: no
 username: ""
 chroot: ""
 directory: %q
 pidfile: ""
 use-syslog: no
 logfile: %q
 root-hints: %q
 do-not-query-localhost: no
 module-config: "validator iterator"
 trust-anchor: %q
 trust-anchor-signaling: no
 val-nsec3-keysize-iterations: "1024 50 2048 50 4096 50"
 val-permissive-mode: no
 num-threads: 1
 do-ip6: no
 ede: yes
 access-control: 127.0.0.0/8 allow
`

// signedName is what is asked of each zone. What is told of its validation is what ours and unbound's agree in.
var signedNames = []struct {
	name string
	typ  uint16
}{
	{"www.", dns.TypeA}, {"www.", dns.TypeTXT}, {"www.", dns.TypeAAAA}, {"www.", 65280}, {"no.", dns.TypeA}, {"no.no.", dns.TypeA}, {"a.b.c.", dns.TypeA},
	{"b.c.", dns.TypeA}, {"c.", dns.TypeMX}, {"x.b.c.", dns.TypeA}, {"x.wild.", dns.TypeA}, {"y.x.wild.", dns.TypeA}, {"x.wild.", dns.TypeTXT}, {"*.wild.", dns.TypeA},
	{"x.cn.", dns.TypeA}, {"x.cn.", dns.TypeCNAME}, {"alias.", dns.TypeA}, {"alias.", dns.TypeMX}, {"hop.", dns.TypeA}, {"insec.", dns.TypeA}, {"deep.", dns.TypeA},
	{"nowhere.", dns.TypeA}, {"a.b.dn.", dns.TypeA}, {"x.dn.", dns.TypeA}, {"dn.", dns.TypeDNAME}, {"far.", dns.TypeA}, {"farther.", dns.TypeA}, {"www.sub.", dns.TypeA},
	{"www.sub.", dns.TypeAAAA}, {"no.sub.", dns.TypeA}, {"back.sub.", dns.TypeA}, {"sub.", dns.TypeDS}, {"sub.", dns.TypeNS}, {"sec.", dns.TypeDS}, {"www.sec.", dns.TypeA},
	{"www.sec.", dns.TypeAAAA}, {"no.sec.", dns.TypeA}, {"sec.", dns.TypeDNSKEY}, {"", dns.TypeDS}, {"", dns.TypeDNSKEY}, {"", dns.TypeSOA}, {"", dns.TypeNS}, {"", dns.TypeMX},
	{"sub2.", dns.TypeA}, {"x.sub2.", dns.TypeA},
}

// verdict is what a resolver says of a name: rcode, AD, and the class of its extended errors.
func verdictOf(t *testing.T, resolver, name string, typ uint16) (said, ede string) {
	t.Helper()
	q := new(dns.Msg).SetQuestion(name, typ)
	q.SetEdns0(1232, true)
	c := dns.Client{Timeout: 12 * time.Second}
	m, _, err := c.Exchange(q, resolver)
	if err == nil && m.Truncated {
		c.Net = "tcp"
		m, _, err = c.Exchange(q, resolver)
	}
	if err != nil {
		return err.Error(), ""
	}
	for _, o := range m.IsEdns0().Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok {
			ede += fmt.Sprint(" ", e.InfoCode)
		}
	}
	return fmt.Sprint(dns.RcodeToString[m.Rcode], " ", m.AuthenticatedData, " ", len(m.Answer)), strings.TrimSpace(ede)
}

// Over signed zones with faults, validator above recurse says what unbound says: return code, AD, and number of records. Zones are signed
// and served by BIND's programs.
func TestSignedPeers(t *testing.T) {
	if !namespaced(t, "unbound", "named", "dnssec-signzone", "dnssec-keygen", "dnssec-dsfromkey") {
		return
	}
	l := buildSigned(t, size("LAB_SIGNED", 2*len(zoneFaults)))
	l.authorities(t)
	conf := filepath.Join(l.dir, "unbound.conf")
	text := fmt.Sprintf(validatingConf, l.dir, filepath.Join(l.dir, "unbound.log"), filepath.Join(l.dir, "hints"), l.root)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, "unbound", "-c", conf)
	i, ours, _, err := test.CoreDNSServerAndPorts(fmt.Sprintf(`.:5401 {
 bind 127.0.0.1
 errors
 validator {
  anchor %q
 }
 recurse {
  hints %s
  allow_servers 127.0.0.0/8
  family ipv4
 }
}
`, strings.ReplaceAll(l.root, "\t", " "), filepath.Join(l.dir, "hints")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	awaitSigned(t, l, "127.0.0.1:5402")
	compareSigned(t, l, ours, "127.0.0.1:5402")
}

func awaitSigned(t *testing.T, l *signedLab, server string) {
	t.Helper()
	for range 100 {
		c := dns.Client{Timeout: time.Second}
		if m, _, err := c.Exchange(new(dns.Msg).SetQuestion("z0.", dns.TypeSOA), server); err == nil && m.Rcode == dns.RcodeSuccess {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, log := range []string{"named0.log", "named1.log", "unbound.log"} {
		b, _ := os.ReadFile(filepath.Join(l.dir, log))
		t.Logf("%s: %s", log, strings.Join(grep(string(b), "error"), "\n"))
	}
	t.Fatalf("%s does not answer", server)
}

// compareSigned asks both the same, cold and then warm.
func compareSigned(t *testing.T, l *signedLab, ours, theirs string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	n, said, edes := 0, map[string]int{}, map[string]int{}
	work := make(chan *signedZone)
	for range 4 {
		all.Go(func() {
			for z := range work {
				for _, round := range []string{"cold", "warm"} {
					for _, q := range signedNames {
						a, ae := verdictOf(t, ours, q.name+z.name, q.typ)
						b, be := verdictOf(t, theirs, q.name+z.name, q.typ)
						mu.Lock()
						n++
						said[a[:strings.LastIndex(a, " ")]]++
						if ae != be {
							edes[fmt.Sprintf("%q, unbound %q", ae, be)]++
						}
						mu.Unlock()
						if a != b {
							t.Errorf("%s %s %s (%s, %s, %s): %s [%s], unbound %s [%s]", round, q.name+z.name, dns.Type(q.typ), z.algorithm, z.denial, z.fault, a, ae, b, be)
						}
					}
				}
			}
		})
	}
	for _, z := range l.zones {
		work <- z
	}
	close(work)
	all.Wait()
	t.Logf("%d questions: %v; extended errors that differ: %v", n, said, edes)
}

// grep is the lines that have a word in them.
func grep(text, word string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
