package test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/test/clients"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// A hundred reloads, every third of which fails, keep the sockets; no query is lost meanwhile.
func TestReloadsKeepSockets(t *testing.T) {
	i, err := CoreDNSServer(".:0 {\nbind 127.0.0.1\nwhoami\n}")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	udp, tcp := CoreDNSServerPorts(i, 0)

	stop := make(chan struct{})
	var asked atomic.Int64
	var wg sync.WaitGroup
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				q := question(fmt.Sprintf("q%d.example.org.", n), dns.TypeA)
				m := ask(t, network, addr, q)
				if m == nil || m.Rcode != dns.RcodeSuccess {
					t.Errorf("%s query %d: got %v", network, n, m)
					return
				}
				asked.Add(1)
			}
		})
	}
	for n := range 100 {
		corefile := fmt.Sprintf("# %d\n.:0 {\nbind 127.0.0.1\nwhoami\n}", n)
		if n%3 == 0 {
			corefile += "\n.:0 {\nno-such-plugin\n}"
		}
		next, err := r.instance.Restart(NewInput(corefile))
		if (err != nil) != (n%3 == 0) {
			t.Fatalf("reload %d: %v", n, err)
		}
		r.instance = next
		if u, c := CoreDNSServerPorts(next, 0); u != udp || c != tcp {
			t.Fatalf("reload %d: listens on %s and %s, was %s and %s", n, u, c, udp, tcp)
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d queries were answered", asked.Load())
}

// Reloads that listen at other addresses, or with fewer sockets, lose no query: what the old sockets have got is answered,
// and the new ones get the rest.
func TestReloadsOfOtherSockets(t *testing.T) {
	port := loopback.Port()
	for _, texts := range [][2]string{{"bind 127.0.0.1", "bind 0.0.0.0"}, {"bind 127.0.0.1\nmultisocket 4", "bind 127.0.0.1\nmultisocket 1"}} {
		corefile := func(n int) string { return fmt.Sprintf(".:%d {\n%s\nwhoami\n}", port, texts[n%2]) }
		i, err := CoreDNSServer(corefile(0))
		if err != nil {
			t.Fatal(err)
		}
		r := &running{i}
		stop := make(chan struct{})
		var asked, lost atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			c := clients.UDPClient{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := c.Ask(question("example.org.", dns.TypeA)); err != nil {
						lost.Add(1)
					}
					asked.Add(1)
				}
			})
		}
		for n := range 20 {
			before := asked.Load()
			eventually.Holds(t, "some are asked", func() bool { return asked.Load() >= before+200 })
			if r.instance, err = r.instance.Restart(NewInput(corefile(n + 1))); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		wg.Wait()
		if lost.Load() > 0 {
			t.Errorf("%q: %d of %d queries are lost", texts, lost.Load(), asked.Load())
		}
		r.end()
	}
}

// After a reload a removed zone is refused, a new one is served, a removed listener is closed, another plugin answers.
func TestReloadOfOtherBlocks(t *testing.T) {
	i, err := CoreDNSServer("old.example:0 both.example:0 {\nbind 127.0.0.1\nwhoami\n}\nother.example:0 {\nbind 127.0.0.2\nwhoami\n}")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	udp, tcp := CoreDNSServerPorts(i, 0)
	_, other := CoreDNSServerPorts(i, 1)
	if r.instance, err = i.Restart(NewInput("new.example:0 {\nbind 127.0.0.1\nwhoami\n}\nboth.example:0 {\nbind 127.0.0.1\nerratic {\ndrop 0\n}\n}")); err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"udp", "tcp"} {
		addr := map[string]string{"udp": udp, "tcp": tcp}[network]
		for name, want := range map[string]string{"old.example.": "REFUSED 0", "new.example.": "NOERROR 0", "both.example.": "NOERROR 1"} {
			m := ask(t, network, addr, question(name, dns.TypeA))
			if m == nil || fmt.Sprintf("%s %d", dns.RcodeToString[m.Rcode], len(m.Answer)) != want {
				t.Errorf("%s %s: got %v, want %s", network, name, m, want)
			}
		}
	}
	if m := ask(t, "tcp", other, question("other.example.", dns.TypeA)); m != nil {
		t.Errorf("a listener that was removed answers: %v", m)
	}
}

// What reloads have opened, those that fail included, is not left behind.
func TestReloadsLeaveNothingBehind(t *testing.T) {
	addr := loopback.Addr()
	corefile := ".:0 {\nbind 127.0.0.1\nhealth " + addr + "\nerrors {\nconsolidate 1h x\n}\nhosts {\nfallthrough\n}\nreload\nwhoami\n}"
	i, err := CoreDNSServer(corefile)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for n := range 50 {
		text := corefile
		if n%2 == 0 {
			text += "\n.:0 {\nbind 192.0.2.1\n}" // fails when it listens, after everything else has started
		}
		next, err := r.instance.Restart(NewInput(text))
		if (err != nil) != (n%2 == 0) {
			t.Fatalf("reload %d: %v", n, err)
		}
		r.instance = next
	}
	eventually.Holds(t, fmt.Sprintf("not many more files than %d before", files), func() bool { return openFiles(t) < files+10 })
	eventually.Holds(t, fmt.Sprintf("not many more goroutines than %d before", goroutines), func() bool { return runtime.NumGoroutine() < goroutines+10 })
	if got := get("http://" + addr + "/health"); got != "200 OK" {
		t.Errorf("health: %s", got)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no list of open files here")
	}
	return len(list)
}

// The reload plugin takes over a changed file, leaves one that is no good, and goes on watching.
func TestReloadPlugin(t *testing.T) {
	out := captureLog(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "Corefile")
	metrics := loopback.Addr()
	write := func(text string) {
		t.Helper()
		text = fmt.Sprintf(".:0 {\nbind 127.0.0.1\nreload 2s 0s\nprometheus %s\n%s\n}", metrics, text)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("whoami")
	conf := flag.Lookup("conf")
	was := conf.Value.String()
	conf.Value.Set(path)
	defer conf.Value.Set(was)
	input, err := caddy.LoadCaddyfile("dns")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = caddy.Start(input); err != nil {
		t.Fatal(err)
	}
	defer func() { // whichever runs now
		for _, i := range caddy.Instances() {
			(&running{i}).end()
		}
	}()
	out.Await(t, "[INFO] plugin/reload: Running configuration SHA512 = ")
	hash := func() string {
		_, labels := test.MetricValue("coredns_reload_version_info", test.Scrape("http://"+metrics+"/metrics"))
		return labels["value"]
	}
	first := hash()

	write("no-such-plugin")
	out.Await(t, "[ERROR] plugin/reload: Corefile changed but reload failed: ")
	if strings.Contains(out.String(), "[INFO] Reloading") {
		t.Error("a typing error began a reload")
	}
	if got := hash(); got != first {
		t.Errorf("version_info tells what does not run: %s, not %s", got, first)
	}
	write("erratic {\ndrop 0\n}")
	out.Await(t, "[INFO] Reloading complete")
	udp, _ := CoreDNSServerPorts(caddy.Instances()[0], 0)
	if m := ask(t, "udp", udp, question("example.org.", dns.TypeA)); m == nil || len(m.Answer) != 1 {
		t.Errorf("got %v", m)
	}
	eventually.Holds(t, "another version_info", func() bool { h := hash(); return h != "" && h != first })
	write("chaos")
	eventually.Holds(t, "a second reload", func() bool { return strings.Count(out.String(), "[INFO] Reloading complete") == 2 })
}

// A loop that a reload brings about is found, though the servers before still answer when the plugins start.
func TestReloadIntoLoop(t *testing.T) {
	l := captureLog(t)
	host, port, _ := net.SplitHostPort(loopback.Addr())
	block := func(plugins string) string { return fmt.Sprintf(".:%s {\nbind %s\n%s\n}", port, host, plugins) }
	i, err := CoreDNSServer(block("whoami"))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	next, err := r.instance.Restart(NewInput(block("loop {\naction break\n}\nforward . " + net.JoinHostPort(host, port) + " {\nmax_concurrent 50\n}")))
	if err != nil {
		t.Fatal(err)
	}
	r.instance = next
	l.Await(t, "plugin/loop: Loop (")
}
