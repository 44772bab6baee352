package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// inside is set in the process that runs in a network namespace of its own, where port 53 is free.
const inside = "LAB_NAMESPACE"

// size is a number from the environment, for larger labs: LAB_TLDS, LAB_ZONES of each, LAB_NAMES of all that are asked for,
// LAB_SIGNED zones.
func size(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// namespaced runs the test once more in a network namespace, and reports true there. It skips where that cannot be had.
func namespaced(t *testing.T, programs ...string) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	for _, p := range append([]string{"unshare", "ip"}, programs...) {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed: apt-get install unbound bind9 util-linux iproute2", p)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace of one's own takes root")
	}
	cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+left(t).String())
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// left is how long a test may take that is run once more, with some time to tell of it.
func left(t *testing.T) time.Duration {
	if end, ok := t.Deadline(); ok {
		return max(time.Until(end)-5*time.Second, time.Second)
	}
	return 9 * time.Minute
}

// program starts a peer, which ends with the test.
func program(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// await waits until a resolver answers.
func await(t *testing.T, resolver string) {
	t.Helper()
	for range 100 {
		q := new(dns.Msg).SetQuestion("t0.", dns.TypeSOA)
		c := dns.Client{Timeout: time.Second}
		if m, _, err := c.Exchange(q, resolver); err == nil && m.Rcode == dns.RcodeSuccess {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", resolver)
}

const unboundConf = `server:
 interface: 127.0.0.1@%d
 do-daemonize: no
 username: ""
 chroot: ""
 directory: %q
 pidfile: ""
 use-syslog: no
 logfile: %q
 root-hints: %q
 do-not-query-localhost: no
 module-config: "iterator"
 num-threads: 1
 do-ip6: no
 qname-minimisation: yes
 access-control: 127.0.0.0/8 allow
`

const namedConf = `options {
 listen-on port %d { 127.0.0.1; };
 listen-on-v6 { none; };
 directory %q;
 pid-file none;
 session-keyfile none;
 recursion yes;
 dnssec-validation no;
 max-recursion-queries 200;
};
zone "." { type hint; file %q; };
controls { };
`

// Unbound starts unbound on the lab.
func unbound(t *testing.T, l *Lab, port int) string {
	t.Helper()
	conf := filepath.Join(l.Dir, "unbound.conf")
	text := fmt.Sprintf(unboundConf, port, l.Dir, filepath.Join(l.Dir, "unbound.log"), l.Hints)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, "unbound", "-c", conf)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func named(t *testing.T, l *Lab, port int) string {
	t.Helper()
	conf := filepath.Join(l.Dir, "named.conf")
	if err := os.WriteFile(conf, []byte(fmt.Sprintf(namedConf, port, l.Dir, l.Hints)), 0o600); err != nil {
		t.Fatal(err)
	}
	program(t, "named", "-4", "-g", "-c", conf)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Over zones with all faults, recurse, unbound and named give the same return codes and addresses, and those that are in the zones.
func TestPeers(t *testing.T) {
	if !namespaced(t, "unbound", "named") {
		return
	}
	l, err := Build(t.TempDir(), 53, size("LAB_TLDS", 4), size("LAB_ZONES", 16))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	i, ours, _, err := test.CoreDNSServerAndPorts(l.Resolver(5301, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	resolvers := []string{ours, unbound(t, l, 5302), named(t, l, 5303)}
	for _, r := range resolvers {
		await(t, r)
	}
	if n := size("LAB_NAMES", len(l.Questions)); n < len(l.Questions) {
		rand.Shuffle(len(l.Questions), func(i, j int) { l.Questions[i], l.Questions[j] = l.Questions[j], l.Questions[i] })
		l.Questions = l.Questions[:n]
	}
	began := time.Now()
	p := &peers{t: t, names: []string{"recurse", "unbound", "named"}, resolvers: resolvers, tally: map[string]int{}}
	each(l, func(q Question) { p.ask(q, "at first") })
	late := p.late
	for _, m := range late { // the others are done: what was a matter of load is none now
		p.askOne(m.peer, m.q, "again")
	}
	t.Logf("%d questions in %v; not as in the zones: %v", len(l.Questions), time.Since(began), p.tally)
}

// peers is resolvers that are compared with what is in the zones. Ours has to say just that.
type peers struct {
	t         *testing.T
	names     []string
	resolvers []string

	mu    sync.Mutex
	tally map[string]int
	late  []missed
}

// missed is a question that a peer did not answer as the zones have it.
type missed struct {
	peer int
	q    Question
}

func (p *peers) ask(q Question, round string) {
	for i := range p.resolvers {
		p.askOne(i, q, round)
	}
}

func (p *peers) askOne(peer int, q Question, round string) {
	a, err := Ask(p.resolvers[peer], q.Name, q.Type)
	if err == nil && a.Rcode == q.Rcode && a.Addr == q.Addr {
		return
	}
	said := "no answer in 12 s"
	if err == nil {
		said = fmt.Sprint(dns.RcodeToString[a.Rcode], " ", a.Addr)
	}
	what := fmt.Sprintf("%s %s, %v: %s", round, p.names[peer], q.Fault, said)
	p.mu.Lock()
	p.tally[what]++
	first := p.tally[what] == 1
	p.late = append(p.late, missed{peer, q})
	p.mu.Unlock()
	text := fmt.Sprintf("%s: %s %d, want %s %q", what, q.Name, q.Type, dns.RcodeToString[q.Rcode], q.Addr)
	switch {
	case peer == 0:
		p.t.Error(text)
	case first:
		p.t.Log(text)
	}
}
