package test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// What asks an endpoint gets an answer all the time while configurations come, fail, and go.
func TestEndpointsSurviveReloads(t *testing.T) {
	health, ready, metrics := loopback.Addr(), loopback.Addr(), loopback.Addr()
	good := fmt.Sprintf(".:0 {\nbind 127.0.0.1\nhealth %s\nready %s\nprometheus %s\nwhoami\n}", health, ready, metrics)
	i, err := CoreDNSServer(good)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()

	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, url := range []string{health + "/health", ready + "/ready", metrics + "/metrics"} {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := get("http://" + url); !strings.HasPrefix(got, "200 ") {
					t.Errorf("%s: got %.40s", url, got)
					return
				}
			}
		})
	}
	for n := range 30 {
		corefile := good
		switch n % 5 {
		case 0:
			corefile = ".:0 {\nno-such-plugin\n}"
		case 1:
			corefile = good + "\n.:0 {\nhealth too many\n}"
		case 2:
			corefile = good + "\n.:0 {\nbind 192.0.2.1\nwhoami\n}" // fails when all else has started
		}
		next, err := r.instance.Restart(NewInput(corefile))
		if (err != nil) != (n%5 < 3) {
			t.Fatalf("reload %d: %v", n, err)
		}
		r.instance = next
	}
	close(stop)
	wg.Wait()

	// One that does not want them any more takes them away.
	next, err := r.instance.Restart(NewInput(".:0 {\nbind 127.0.0.1\nwhoami\n}"))
	if err != nil {
		t.Fatal(err)
	}
	r.instance = next
	for _, url := range []string{health + "/health", ready + "/ready", metrics + "/metrics"} {
		if got := get("http://" + url); got != "no answer" {
			t.Errorf("%s: got %.40s", url, got)
		}
	}
}

// Who hears that all is ready is answered at all addresses, however many have yet to be opened.
func TestReadyWhenItListens(t *testing.T) {
	ready, last := loopback.Addr(), ""
	corefile := ""
	for range 40 {
		last = loopback.Addr()
		corefile += fmt.Sprintf("%s {\nready %s\nwhoami\n}\n", strings.Replace(last, "127.0.0.1", ".", 1), ready)
	}
	heard := make(chan error)
	go func() {
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			if get("http://"+ready+"/ready") == "200 OK" {
				_, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), last)
				heard <- err
				return
			}
		}
		heard <- errors.New("never ready")
	}()
	i, err := CoreDNSServer(corefile)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	if err := <-heard; err != nil {
		t.Error(err)
	}
}

func TestEndpointsOfOneAddress(t *testing.T) {
	addr := loopback.Addr()
	start(t, fmt.Sprintf(`.:0 {
		health %[1]s
		ready %[1]s
		prometheus %[1]s
		pprof %[1]s
		whoami
	}
	example.org:0 {
		health %[1]s
		ready %[1]s
		prometheus %[1]s
		erratic
	}`, addr))
	for path, want := range map[string]string{
		"/health":              "200 OK",
		"/ready":               "503 erratic",
		"/metrics":             "200 # HELP",
		"/debug/pprof/cmdline": "200 ",
		"/other":               "404",
	} {
		if got := get("http://" + addr + path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %.40s, want %s", path, got, want)
		}
	}
}

func TestEndpointThatIsTaken(t *testing.T) {
	srv := newPlainListener(t)
	for _, directive := range []string{"health", "ready", "pprof"} {
		i, err := CoreDNSServer(fmt.Sprintf(".:0 {\n%s %s\nwhoami\n}", directive, srv))
		if err == nil {
			t.Errorf("%s: started", directive)
			(&running{i}).end()
		} else if !strings.Contains(err.Error(), srv) {
			t.Errorf("%s: the error does not name the address: %v", directive, err)
		}
	}
	out := captureLog(t)
	start(t, ".:0 {\nprometheus "+srv+"\nwhoami\n}")
	if want := "[ERROR] Failed to start metrics handler: "; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q, want %q", out, want)
	}
}

// ready closes first; health and DNS answer until the longest lameduck is over.
func TestLameduck(t *testing.T) {
	health, second, ready := loopback.Addr(), loopback.Addr(), loopback.Addr()
	i, err := CoreDNSServer(fmt.Sprintf(".:0 {\nbind 127.0.0.1\nready %s\nhealth %s {\nlameduck 700ms\n}\nwhoami\n}\nexample.org:0 {\nbind 127.0.0.1\nhealth %s {\nlameduck 900ms\n}\n}",
		ready, health, second))
	if err != nil {
		t.Fatal(err)
	}
	udp, _ := CoreDNSServerPorts(i, 0)
	begin := time.Now()
	ended := make(chan struct{})
	go func() { i.ShutdownCallbacks(); close(ended) }()
	eventually.Holds(t, "ready to close", func() bool { return get("http://"+ready+"/ready") == "no answer" })
	if got := get("http://" + health + "/health"); got != "200 OK" {
		t.Errorf("health: %s", got)
	}
	if m := ask(t, "udp", udp, question("example.net.", dns.TypeA)); m == nil {
		t.Error("no answer to a query")
	}
	<-ended
	if took := time.Since(begin); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("the end took %s, want 900ms", took)
	}
	if got := get("http://" + health + "/health"); got != "no answer" {
		t.Errorf("health: %s", got)
	}
	CoreDNSServerStop(i)
}

func TestReadyAsksAllBlocks(t *testing.T) {
	ready := loopback.Addr()
	_, udp, _ := start(t, fmt.Sprintf("example.org:0 {\nready %[1]s\nerratic {\ndrop 0\n}\n}\nexample.net:0 {\nready %[1]s\nerratic {\ndrop 0\n}\n}", ready))
	url := "http://" + ready + "/ready"
	serve := func(name string) {
		for range 3 {
			ask(t, "udp", udp, question(name, dns.TypeA))
		}
	}
	for _, step := range []struct{ name, want string }{{"", "503 erratic"}, {"example.org.", "503 erratic"}, {"example.net.", "200 OK"}} {
		if step.name != "" {
			serve(step.name)
		}
		if got := get(url); got != step.want {
			t.Errorf("after queries for %q: got %s, want %s", step.name, got, step.want)
		}
	}
}

func TestPluginEnabledFollowsReloads(t *testing.T) {
	metrics := loopback.Addr()
	corefile := ".:0 example.org:0 {\nbind 127.0.0.1\nprometheus " + metrics + "\n%s\n}"
	i, err := CoreDNSServer(fmt.Sprintf(corefile, "chaos\nwhoami"))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	enabled := func(name string) int {
		return test.ScrapeMetricAsInt(metrics, "coredns_plugin_enabled", name, 0)
	}
	if c, w := enabled("chaos"), enabled("whoami"); c != 2 || w != 2 {
		t.Errorf("at first: chaos %d, whoami %d, want 2 keys each", c, w)
	}
	if _, err := r.instance.Restart(NewInput(fmt.Sprintf(corefile, "any") + "\n.:0 {\nbind 192.0.2.1\n}")); err == nil {
		t.Fatal("no error")
	}
	if c, a := enabled("chaos"), enabled("any"); c != 2 || a != 0 {
		t.Errorf("after a failed reload: chaos %d, any %d", c, a)
	}
	if r.instance, err = r.instance.Restart(NewInput(fmt.Sprintf(corefile, "any"))); err != nil {
		t.Fatal(err)
	}
	if c, a := enabled("chaos"), enabled("any"); c != 0 || a != 2 {
		t.Errorf("after a reload: chaos %d, any %d", c, a)
	}
}
