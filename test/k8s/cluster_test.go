// Package k8s runs whole servers against a real Kubernetes API.
//
//	clusterbed (etcd, kube-apiserver) ──▶ server with a Corefile ──▶ queries, as pods send them
//
// All tests share one API, as its start takes long: they are parts of TestCluster. Those
// that stop it or change what others ask about come last. Where the API's programs have not been built, all
// is skipped; see test/cluster.
package k8s

import (
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test"
	"github.com/coredns/coredns/test/clusterbed"

	"github.com/miekg/dns"
)

func TestCluster(t *testing.T) {
	bed := clusterbed.Start(t, clusterbed.Options{})
	bed.Apply("fixture.yaml", "fixture-status.yaml")
	for _, part := range []struct {
		name string
		run  func(*testing.T, *clusterbed.Bed)
	}{
		{"stock Corefile", stockCorefile},
		{"what a pod asks", podQueries},
		{"kinds of services", kindsOfServices},
		{"pods", pods},
		{"filters", filters},
		{"zonal", zonal},
		{"clients of the API", clients},
		{"changes", changes},
		{"metadata", podMetadata},
		{"rights", rights},
		{"ready", readiness},
		{"outage", outage},
		{"restored", restored},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, bed) }) {
			return // what the others would find is not worth much
		}
	}
}

// server is a running server.
type server struct {
	udp, tcp    string // its addresses
	ready, prom string // where it says if it is ready, and its metrics
	log         *logtest.Output
}

// serve starts a server whose kubernetes block has the options given, for as long as the test runs.
func serve(t *testing.T, bed *clusterbed.Bed, zones string, options ...string) *server {
	t.Helper()
	options = append(options, "kubeconfig "+bed.DNSKubeconfig, "startup_timeout 30s")
	return serveBlock(t, "kubernetes "+zones+" {\n"+strings.Join(options, "\n")+"\n}")
}

// serveBlock starts a server with one block of these lines.
func serveBlock(t *testing.T, lines string) *server {
	t.Helper()
	s := &server{ready: loopback.Addr()}
	s.start(t, ".:0 {\nbind 127.0.0.1\nerrors\nready "+s.ready+"\n"+lines+"\n}")
	return s
}

func (s *server) start(t *testing.T, corefile string) {
	t.Helper()
	s.log = captureLog(t)
	i, udp, tcp, err := test.CoreDNSServerAndPorts(corefile)
	if err != nil {
		t.Fatalf("%v\n%s", err, corefile)
	}
	t.Cleanup(func() {
		i.ShutdownCallbacks()
		test.CoreDNSServerStop(i)
	})
	s.udp, s.tcp = loopback.To(udp), loopback.To(tcp)
}

// ask returns the reply to a question as text: the rcode and the records of the answer and additional sections without
// TTL and class, sorted. It asks over TCP and UDP.
func (s *server) ask(t *testing.T, qname, typ string) string {
	t.Helper()
	over, want := s.over(t, "udp", s.udp, qname, typ), s.over(t, "tcp", s.tcp, qname, typ)
	if over != want {
		t.Errorf("%s %s over UDP: %s, over TCP: %s", qname, typ, over, want)
	}
	return want
}

func (s *server) over(t *testing.T, network, addr, qname, typ string) string {
	t.Helper()
	c := dns.Client{Net: network, UDPSize: 4096, Timeout: 5 * time.Second}
	r, _, err := c.Exchange(new(dns.Msg).SetQuestion(qname, dns.StringToType[typ]), addr)
	if err != nil {
		t.Fatalf("%s %s: %v", qname, typ, err)
	}
	return text(r)
}

func text(m *dns.Msg) string {
	var lines []string
	for _, rr := range append(m.Answer, m.Extra...) {
		if f := strings.Fields(rr.String()); rr.Header().Rrtype != dns.TypeOPT {
			lines = append(lines, strings.Join(append(f[:1], f[3:]...), " "))
		}
	}
	sort.Strings(lines)
	return strings.Join(append([]string{dns.RcodeToString[m.Rcode]}, lines...), "\n")
}

// expect asks questions "NAME TYPE" and compares the answers. Within them "~" stands for the question's name.
func (s *server) expect(t *testing.T, answers [][]string) {
	t.Helper()
	for _, a := range answers {
		qname, typ, _ := strings.Cut(a[0], " ")
		want := strings.ReplaceAll(strings.Join(a[1:], "\n"), "~", qname)
		if got := s.ask(t, qname, typ); got != want {
			t.Errorf("%s\n got %s\nwant %s", a[0], indented(got), indented(want))
		}
	}
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n     ") }

// await asks over UDP until the answer is as wanted, and returns how long that took.
func (s *server) await(t *testing.T, qname, typ, want string) time.Duration {
	t.Helper()
	begin, got := time.Now(), ""
	for time.Since(begin) < 20*time.Second {
		if got = s.over(t, "udp", s.udp, qname, typ); got == want {
			return time.Since(begin)
		}
		time.Sleep(100 * time.Microsecond)
	}
	t.Fatalf("%s %s is still %s", qname, typ, got)
	return 0
}

// captureLog is what servers log for the rest of the test.
func captureLog(t *testing.T) *logtest.Output {
	t.Helper()
	i, err := test.CoreDNSServer(".:0 {\nbind 127.0.0.1\nwhoami\n}") // the first server of a process makes it quiet
	if err != nil {
		t.Fatal(err)
	}
	test.CoreDNSServerStop(i)
	return logtest.Capture(t)
}

// get returns status and text that an HTTP endpoint answers.
func get(url string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 3 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// isReady returns what /ready answers.
func (s *server) isReady() string { return get("http://" + s.ready + "/ready") }
