package lab

import (
	"fmt"
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

// size is a number from the environment, for larger labs: LAB_TLDS, LAB_ZONES.
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
	cmd := exec.Command("unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
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
	names := []string{"recurse", "unbound", "named"}
	var mu sync.Mutex
	wrong := map[string]int{}
	each(l, func(q Question) {
		for i, r := range resolvers {
			a, err := Ask(r, q.Name, q.Type)
			if err == nil && a.Rcode == q.Rcode && a.Addr == q.Addr {
				continue
			}
			mu.Lock()
			wrong[names[i]]++
			wrong[fmt.Sprintf("%s, fault %d", names[i], q.Fault)]++
			mu.Unlock()
			if i == 0 {
				t.Errorf("%s %s %d (fault %d): %v %v, want %d %q", names[i], q.Name, q.Type, q.Fault, a, err, q.Rcode, q.Addr)
			} else if wrong[names[i]] < 10 {
				t.Logf("%s %s %d (fault %d): %v %v, want %d %q", names[i], q.Name, q.Type, q.Fault, a, err, q.Rcode, q.Addr)
			}
		}
	})
	t.Logf("%d questions; not as in the zones: %v", len(l.Questions), wrong)
}
