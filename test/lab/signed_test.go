package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

// signedNames is what is asked of each zone.
var signedNames = []signedName{
	{"www.", dns.TypeA}, {"www.", dns.TypeTXT}, {"www.", dns.TypeAAAA}, {"www.", 65280}, {"no.", dns.TypeA}, {"no.no.", dns.TypeA}, {"a.b.c.", dns.TypeA},
	{"b.c.", dns.TypeA}, {"c.", dns.TypeMX}, {"x.b.c.", dns.TypeA}, {"x.wild.", dns.TypeA}, {"y.x.wild.", dns.TypeA}, {"x.wild.", dns.TypeTXT}, {"*.wild.", dns.TypeA},
	{"x.cn.", dns.TypeA}, {"x.cn.", dns.TypeCNAME}, {"alias.", dns.TypeA}, {"alias.", dns.TypeMX}, {"hop.", dns.TypeA}, {"insec.", dns.TypeA}, {"deep.", dns.TypeA},
	{"nowhere.", dns.TypeA}, {"a.b.dn.", dns.TypeA}, {"x.dn.", dns.TypeA}, {"dn.", dns.TypeDNAME}, {"far.", dns.TypeA}, {"farther.", dns.TypeA}, {"www.sub.", dns.TypeA},
	{"www.sub.", dns.TypeAAAA}, {"no.sub.", dns.TypeA}, {"back.sub.", dns.TypeA}, {"sub.", dns.TypeDS}, {"sub.", dns.TypeNS}, {"sec.", dns.TypeDS}, {"www.sec.", dns.TypeA},
	{"www.sec.", dns.TypeAAAA}, {"no.sec.", dns.TypeA}, {"sec.", dns.TypeDNSKEY}, {"", dns.TypeDS}, {"", dns.TypeDNSKEY}, {"", dns.TypeSOA}, {"", dns.TypeNS}, {"", dns.TypeMX},
	{"sub2.", dns.TypeA}, {"x.sub2.", dns.TypeA},
}

type signedName struct {
	name string
	typ  uint16
}

const signedTTL = 300 // of all records but the keys that our plugin has

// opinion is what a resolver says of a name: rcode, AD, number of records, and the codes of its extended errors.
type opinion struct {
	said, ede string
	ttl       uint32 // the most of the answer
}

// opinionOf asks a resolver.
func opinionOf(resolver, name string, typ uint16) opinion {
	q := new(dns.Msg).SetQuestion(name, typ)
	q.SetEdns0(1232, true)
	c := dns.Client{Timeout: 12 * time.Second}
	m, _, err := c.Exchange(q, resolver)
	if err == nil && m.Truncated {
		c.Net = "tcp"
		m, _, err = c.Exchange(q, resolver)
	}
	if err != nil {
		return opinion{said: err.Error()}
	}
	var codes []string
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				codes = append(codes, fmt.Sprint(e.InfoCode))
			}
		}
	}
	slices.Sort(codes)
	said := dns.RcodeToString[m.Rcode]
	if m.AuthenticatedData {
		said += " AD"
	}
	if m.Rcode != dns.RcodeServerFailure { // some hand out what is not to be believed with it
		said += fmt.Sprint(" ", len(m.Answer))
	}
	ttl := uint32(0)
	for _, rr := range m.Answer {
		ttl = max(ttl, rr.Header().Ttl)
	}
	return opinion{said, strings.Join(slices.Compact(codes), " "), ttl}
}

// Over signed zones with faults validator above recurse says what unbound and delv say: return code, AD, number of
// records, and why. The zones are signed by BIND's tools or our plugin dnssec. Where we differ for a reason, it stands
// in the list of differences, and nowhere else.
func TestSignedPeers(t *testing.T) {
	if !namespaced(t, "unbound", "named", "delv", "dnssec-signzone", "dnssec-keygen", "dnssec-dsfromkey") {
		return
	}
	n := size("LAB_SIGNED", 0)
	l := buildSigned(t, mixed(max(n, len(zoneFaults))))
	l.authorities(t)
	conf := filepath.Join(l.dir, "unbound.conf")
	text := fmt.Sprintf(validatingConf, l.dir, filepath.Join(l.dir, "unbound.log"), filepath.Join(l.dir, "hints"), l.root)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, "unbound", "-c", conf)
	c := &comparison{t: t, lab: l, delv: newDelv(t, l), whole: n > 0, tally: map[string]int{}, used: map[*difference]bool{}}
	c.ours = serve(t, 5401, l.validator("")+l.recurse(""))
	c.theirs = "127.0.0.1:5402"
	awaitSigned(t, l, c.theirs)
	c.run()
	if n < allRows {
		return
	}
	for _, row := range unused(c.used) {
		t.Errorf("no name needs what is listed of %s", row)
	}
}

// allRows is so many zones that each difference of the list is seen: all faults with different kinds of denials and algorithms.
const allRows = 234

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

// comparison asks all the same, cold and then warm.
type comparison struct {
	t            *testing.T
	lab          *signedLab
	ours, theirs string
	delv         *delv
	whole        bool // delv is asked for all names

	mu    sync.Mutex
	tally map[string]int
	used  map[*difference]bool
}

func (c *comparison) run() {
	work := make(chan int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range work {
				z := c.lab.zones[n]
				for _, round := range []string{"cold", "warm"} {
					for i, q := range signedNames {
						if round == "cold" || c.whole || (i+n)%9 == 0 {
							c.ask(z, q, round, round == "cold" && (c.whole || (i+n)%25 == 0))
						}
					}
				}
			}
		})
	}
	began := time.Now()
	for n := range c.lab.zones {
		work <- n
	}
	close(work)
	all.Wait()
	var lines []string
	for what, n := range c.tally {
		lines = append(lines, fmt.Sprintf("%6d %s", n, what))
	}
	slices.Sort(lines)
	c.t.Logf("%d zones, %d names of each, %v:\n%s", len(c.lab.zones), len(signedNames), time.Since(began), strings.Join(lines, "\n"))
}

// ask compares one name.
func (c *comparison) ask(z *signedZone, q signedName, round string, delv bool) {
	name := q.name + z.name
	ours, theirs := opinionOf(c.ours, name, q.typ), opinionOf(c.theirs, name, q.typ)
	c.count("questions")
	c.count("said " + ours.said)
	what := fmt.Sprintf("%s %s %s (%s, %s, %s)", round, name, dns.Type(q.typ), z.algorithm, z.denial, z.fault.name)
	if status(ours.said) == secure && ours.ttl > signedTTL && (q.typ != dns.TypeDNSKEY || !z.online()) {
		c.t.Errorf("%s: a TTL of %d, signed was %d", what, ours.ttl, signedTTL)
	}
	c.judge(what, "unbound", z, q, ours.said, theirs.said)
	if ours.said == theirs.said {
		c.judge(what, "unbound's EDE", z, q, ours.ede, theirs.ede)
	}
	if delv {
		c.count("questions to delv")
		c.judge(what, "delv", z, q, status(ours.said), c.delv.ask(name, q.typ))
	}
}

func (c *comparison) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally[what]++
}

// use notes that a row of the list was needed.
func (c *comparison) use(who string, d *difference) {
	c.count(who + ": " + d.reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[d] = true
}

// judge looks whether two opinions are the same, or differ for a reason.
func (c *comparison) judge(what, who string, z *signedZone, q signedName, ours, theirs string) {
	if ours == theirs {
		return
	}
	if d := differs(who, z, q, ours, theirs); d != nil {
		c.use(who, d)
		return
	}
	c.count(fmt.Sprintf("%s %q, ours %q: NOT LISTED", who, theirs, ours))
	c.t.Errorf("%s: ours %q, %s %q", what, ours, who, theirs)
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
