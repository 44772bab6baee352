package k8s

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clusterbed"

	"github.com/miekg/dns"
	"sigs.k8s.io/yaml"
)

// outside is a resolver of the world outside: it knows www.example.org, and denies all else.
func outside(t *testing.T) (addr string) {
	t.Helper()
	conn, ln, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable = true
		q := r.Question[0]
		soa, _ := dns.NewRR("example.org. 60 IN SOA ns.example.org. h.example.org. 1 2 3 4 5")
		switch rr, _ := dns.NewRR("www.example.org. 60 IN A 192.0.2.80"); {
		case strings.EqualFold(q.Name, "www.example.org.") && q.Qtype == dns.TypeA:
			m.Answer = []dns.RR{rr}
		case strings.EqualFold(q.Name, "www.example.org."):
			m.Ns = []dns.RR{soa}
		default:
			m.Rcode = dns.RcodeNameError
			m.Ns = []dns.RR{soa}
		}
		w.WriteMsg(m)
	})
	for _, s := range []*dns.Server{{PacketConn: conn, Handler: handler}, {Listener: ln, Handler: handler}} {
		go s.ActivateAndServe()
		t.Cleanup(func() { s.Shutdown() })
	}
	return conn.LocalAddr().String()
}

// stock starts the server with the Corefile of deploy/, in which only places are changed: where the API is,
// where the world outside is, and at which ports of its own it listens.
func stock(t *testing.T, bed *clusterbed.Bed) *server {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "configmap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct{ Data struct{ Corefile string } }
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	s := &server{ready: loopback.Addr(), prom: loopback.Addr()}
	corefile := config.Data.Corefile
	for _, change := range [][2]string{
		{".:53 {", ".:0 {"},
		{"lameduck 5s", "lameduck 10ms"},
		{"health {", "health " + loopback.Addr() + " {"},
		{"ready", "ready " + s.ready},
		{"pods insecure", "pods insecure\nstartup_timeout 30s\nkubeconfig " + bed.DNSKubeconfig},
		{":9153", s.prom},
		{"/etc/resolv.conf", outside(t)},
	} {
		if strings.Count(corefile, change[0]) != 1 {
			t.Fatalf("the Corefile of deploy/ does not have %q once", change[0])
		}
		corefile = strings.Replace(corefile, change[0], change[1], 1)
	}
	s.start(t, corefile)
	return s
}

func stockCorefile(t *testing.T, bed *clusterbed.Bed) {
	s := stock(t, bed)
	if got := s.isReady(); got != "200 OK" {
		t.Errorf("/ready: %s", got)
	}
	for range 2 { // the second time from the cache
		s.expect(t, [][]string{
			{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
			{"cart.shop.svc.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:96::a:1"},
			{"single4.shop.svc.cluster.local. AAAA", "NOERROR"},
			{"kubernetes.default.svc.cluster.local. A", "NOERROR", "~ A 10.96.0.1"},
			{"nothing.shop.svc.cluster.local. A", "NXDOMAIN"},
			{"10-9-9-9.shop.pod.cluster.local. A", "NOERROR", "~ A 10.9.9.9"},
			{"1.10.96.10.in-addr.arpa. PTR", "NOERROR", "~ PTR cart.shop.svc.cluster.local."},
			{"1.2.0.192.in-addr.arpa. PTR", "NXDOMAIN"}, // from outside
			{"96.10.in-addr.arpa. PTR", "NOERROR"},
			{"www.example.org. A", "NOERROR", "~ A 192.0.2.80"},
			{"none.example.org. A", "NXDOMAIN"},
			{"elsewhere.shop.svc.cluster.local. A", "NOERROR", "~ CNAME www.example.org.", "www.example.org. A 192.0.2.80"},
		})
	}
	m := new(dns.Msg).SetQuestion("CART.shop.svc.cluster.local.", dns.TypeA)
	r, err := dns.Exchange(m, s.udp)
	if err != nil || len(r.Answer) != 1 || r.Answer[0].Header().Ttl > 30 || r.Answer[0].Header().Name != m.Question[0].Name || !r.Authoritative {
		t.Errorf("got %v, %v", r, err)
	}
	metrics := get("http://" + s.prom + "/metrics")
	for _, name := range []string{"coredns_kubernetes_last_event_timestamp_seconds", "coredns_kubernetes_watch_gaps_total 0",
		`coredns_kubernetes_rest_client_requests_total{code="200",host="` + strings.TrimPrefix(bed.URL, "https://") + `",method="GET"}`} {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("no metric %s", name)
		}
	}
}
