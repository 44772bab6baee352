package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clusterbed"
)

// TestRealAPI follows a real API server through what clusters go through.
func TestRealAPI(t *testing.T) {
	bed := clusterbed.Start(t, clusterbed.Options{})
	bed.Apply("fixture.yaml", "fixture-status.yaml")
	log := &lines{}
	c, err := client.New(client.Config{Kubeconfig: client.Kubeconfig(bed.DNSKubeconfig, ""), UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	config := everything()
	config.Multicluster = false // there is no such resource on this server
	config.Log = log
	s := start(t, config, c)
	awaitSync(t, s)
	t.Run("kinds", func(t *testing.T) { realKinds(t, s) })
	t.Run("slices", func(t *testing.T) { realSlices(t, s) })
	t.Run("pods", func(t *testing.T) { realPods(t, s, bed) })
	t.Run("speed", func(t *testing.T) { realSpeed(t, s, bed) })
	t.Run("endpoint with TLS files", func(t *testing.T) { realTLS(t, bed) })
	t.Run("rights", func(t *testing.T) { realRights(t, bed) })
	t.Run("outage", func(t *testing.T) { realOutage(t, s, bed, log) })
}

func realKinds(t *testing.T, s *Store) {
	for _, ns := range []string{"shop", "lab", "bare", "default"} {
		if !s.Exposed([]byte(ns)) {
			t.Errorf("namespace %s is not exposed", ns)
		}
	}
	if s.Exposed([]byte("nowhere")) {
		t.Error("a namespace that is not there is exposed")
	}
	for _, tc := range []struct{ ns, name, want string }{
		{"shop", "cart", `[10.96.10.1 fd00:10:96::a:1] headless=false "" [{http tcp 80} {https tcp 443} {dns udp 53}] [192.0.2.10 2001:db8::10] []`},
		{"shop", "single4", `[10.96.10.4] headless=false "" [{ tcp 80}] [] []`},
		{"shop", "single6", `[fd00:10:96::a:6] headless=false "" [{http tcp 80}] [] []`},
		{"shop", "node-port", `[10.96.10.5] headless=false "" [{http tcp 80}] [] []`},
		{"shop", "balanced", `[10.96.10.9] headless=false "" [{http tcp 80}] [203.0.113.9] [lb.example.org]`},
		{"shop", "elsewhere", `[] headless=false "www.example.org" [{http tcp 80}] [] []`},
		{"shop", "db", `[] headless=true "" [{sql tcp 5432}] [] []`},
		{"shop", "portless", `[] headless=true "" [] [] []`},
		{"lab", "cart", `[10.96.20.1] headless=false "" [{http tcp 80}] [] []`},
	} {
		svc := s.Service([]byte(tc.ns), []byte(tc.name))
		if svc == nil {
			t.Errorf("no service %s/%s", tc.ns, tc.name)
			continue
		}
		name, _ := svc.ExternalName()
		got := fmt.Sprintf("%v headless=%v %q %v %v %v", svc.ClusterIPs(), svc.Headless(), name, svc.Ports(), svc.ExternalIPs(), svc.ExternalHosts())
		if got != tc.want {
			t.Errorf("%s/%s:\n%s, want\n%s", tc.ns, tc.name, got, tc.want)
		}
	}
	if svc := s.ServiceByIP(addr("fd00:10:96::a:1")); svc == nil || svc.Name() != "cart" {
		t.Error("no service at its second family's address")
	}
	if x := s.ServicesByExternalIP(addr("203.0.113.9")); x.Next() == nil {
		t.Error("no service at the load balancer's address")
	}
}

func realSlices(t *testing.T, s *Store) {
	want := `shop/db 10.244.20.1 h=db-0 t= n=node-a z=zone-a
shop/db 10.244.20.1 h=db-0 t= n=node-a z=zone-a
shop/db 10.244.20.2 h= t=db-1 n=node-a z=zone-b
shop/db fd00:10:244::14:1 h=db-0 t= n=node-a z=zone-a`
	if got := endpoints(of(s.Slices([]byte("shop"), []byte("db")))); got != want {
		t.Errorf("endpoints:\n%s\nwant\n%s", got, want)
	}
	if got := endpoints(ofIP(s.SlicesByIP(addr("10.244.10.2")))); !strings.Contains(got, "shop/cart 10.244.10.2") {
		t.Errorf("by address: %s", got)
	}
}

func realPods(t *testing.T, s *Store, bed *clusterbed.Bed) {
	for _, ip := range []string{"10.244.10.1", "fd00:10:244::a:1"} {
		if p := s.PodAt(addr(ip)); p == nil || p.Name() != "cart-1" || !slices.Contains(p.Labels(), Label{"app", "cart"}) || !slices.Contains(p.Labels(), Label{"track", "stable"}) {
			t.Errorf("pod at %s: %+v", ip, p)
		}
	}
	if s.PodAt(addr("10.244.10.77")) != nil {
		t.Error("a finished pod holds its address")
	}
	if s.PodAt(addr("192.0.2.77")) != nil || !s.HasPod([]byte("lab"), addr("192.0.2.77")) {
		t.Error("the address of a node was given to one of its pods, or to none")
	}
	bed.ApplyYAML("apiVersion: v1\nkind: Pod\nmetadata: {name: db-1, namespace: shop}\nstatus: {phase: Succeeded, podIP: 10.244.20.2, podIPs: [{ip: 10.244.20.2}]}")
	eventually.Holds(t, "a pod that finishes", func() bool { return s.PodAt(addr("10.244.20.2")) == nil })
	bed.Delete("v1", "Pod", "shop", "six")
	eventually.Holds(t, "a pod that is deleted", func() bool { return s.PodAt(addr("fd00:10:244::6:6")) == nil })
}

// realSpeed sees how long it takes from the API's word that it has taken a change to the store's knowing it.
func realSpeed(t *testing.T, s *Store, bed *clusterbed.Bed) {
	var took []time.Duration
	for i := range 20 {
		ip := fmt.Sprintf("10.244.30.%d", i+1)
		bed.ApplyYAML(fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: portless-4, namespace: shop, labels: {kubernetes.io/service-name: portless}}
addressType: IPv4
ports: []
endpoints: [{addresses: [%s], conditions: {ready: true}}]`, ip))
		begin := time.Now()
		for endpoints(of(s.Slices([]byte("shop"), []byte("portless")))) != "shop/portless "+ip+" h= t= n= z=" {
			if time.Since(begin) > 5*time.Second {
				t.Fatal("a change did not arrive")
			}
			time.Sleep(50 * time.Microsecond)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	t.Logf("median %v, longest %v", took[10], took[19])
	if took[10] > 10*time.Millisecond {
		t.Errorf("median %v, want at most 10 ms", took[10])
	}
}

func realTLS(t *testing.T, bed *clusterbed.Bed) {
	c, err := client.New(client.Config{Endpoint: bed.URL, CertFile: bed.CertFile, KeyFile: bed.KeyFile, CAFile: bed.CAFile, UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	awaitSync(t, start(t, everythingLocal(), c))
}

// realRights starts with a client that has no rights at all.
func realRights(t *testing.T, bed *clusterbed.Bed) {
	c, err := client.New(client.Config{Kubeconfig: client.Kubeconfig(bed.NobodyKubeconfig, ""), UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	s := start(t, Config{Endpoints: true, Log: log}, c)
	for _, r := range []string{"services", "namespaces", "endpointslices.discovery.k8s.io"} {
		for _, verb := range []string{"watch", "list"} {
			line := "refuses to " + verb + " " + r
			eventually.Holds(t, line, func() bool { return len(log.with(line)) == 1 })
			if !strings.Contains(log.with(line)[0], `User "nobody" cannot`) {
				t.Errorf("not the server's word: %s", log.with(line)[0])
			}
		}
	}
	if s.HasSynced() {
		t.Error("synced without a right")
	}
	// The rights come while the server runs.
	bed.ApplyYAML(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nobody}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dns-under-test}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody}]`)
	awaitSync(t, s)
}

func realOutage(t *testing.T, s *Store, bed *clusterbed.Bed, log *lines) {
	record := s.Service([]byte("shop"), []byte("cart"))
	bed.StopAPI()
	eventually.Holds(t, "loss", func() bool { return len(log.with("lost the Kubernetes API")) == 1 })
	if s.Service([]byte("shop"), []byte("cart")) != record || !s.Exposed([]byte("shop")) || !s.HasSynced() {
		t.Error("data went with the API")
	}
	bed.StartAgain()
	bed.ApplyYAML("apiVersion: v1\nkind: Service\nmetadata: {name: after, namespace: shop}\nspec: {clusterIP: 10.96.10.77, ports: [{port: 80}]}")
	bed.Delete("v1", "Service", "shop", "single4")
	eventually.Holds(t, "healing", func() bool {
		return s.ServiceByIP(addr("10.96.10.77")) != nil && s.Service([]byte("shop"), []byte("single4")) == nil
	})
	eventually.Holds(t, "line", func() bool { return len(log.with("is back after")) == 1 })
	if s.Service([]byte("shop"), []byte("cart")) != record {
		t.Error("what did not change is another record")
	}
	t.Logf("%+v, log %q", s.Stats(), log.all)
}
