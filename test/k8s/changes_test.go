package k8s

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clusterbed"
)

// slice is the endpoint slice of the service portless with one endpoint.
func slice(ip, annotations string) string {
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: portless-4, namespace: shop, labels: {kubernetes.io/service-name: portless}, annotations: {%s}}
addressType: IPv4
ports: []
endpoints: [{addresses: [%s], conditions: {ready: true}}]`, annotations, ip)
}

// changes sees how long it takes from the API's word that it has taken a change until the change is answered.
func changes(t *testing.T, bed *clusterbed.Bed) {
	prom := loopback.Addr()
	s := serveBlock(t, "prometheus "+prom+"\nkubernetes "+zones+" {\nkubeconfig "+bed.DNSKubeconfig+"\nstartup_timeout 30s\n}")
	const name = "portless.shop.svc.cluster.local."
	serial := func() uint64 {
		f := strings.Fields(s.ask(t, "cluster.local.", "SOA"))
		n, err := strconv.ParseUint(f[5], 10, 32)
		if err != nil {
			t.Fatalf("%v: %q", err, f)
		}
		return n
	}
	measured := func() int {
		m := regexp.MustCompile(`dns_programming_duration_seconds_count\{service_kind="headless_with_selector"\} (\d+)`).FindStringSubmatch(get("http://" + prom + "/metrics"))
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	before := measured() // by former runs in this process
	var took []time.Duration
	last := serial()
	for i := range 20 {
		ip := fmt.Sprintf("10.244.30.%d", i+1)
		trigger := "endpoints.kubernetes.io/last-change-trigger-time: " + strconv.Quote(time.Now().UTC().Format(time.RFC3339Nano))
		bed.ApplyYAML(slice(ip, trigger))
		took = append(took, s.await(t, name, "A", "NOERROR\n"+name+" A "+ip))
		now := serial()
		for end := time.Now().Add(20 * time.Second); now <= last && time.Now().Before(end); now = serial() {
			time.Sleep(time.Millisecond) // the serial rises just after the change can be seen: who has the new one has the change
		}
		if now <= last {
			t.Errorf("serial %d after %d", now, last)
		}
		last = now
	}
	slices.Sort(took)
	t.Logf("a change is answered after %v (median), %v (longest)", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > time.Second { // nobody polls
		t.Errorf("a change is answered after %v (median)", took[len(took)/2])
	}
	if n := measured() - before; n != 20 {
		t.Errorf("measured changes: %d", n)
	}

	bed.ApplyYAML("apiVersion: v1\nkind: Service\nmetadata: {name: new, namespace: shop}\nspec: {clusterIP: 10.96.30.1, ports: [{name: http, port: 80}]}")
	s.await(t, "new.shop.svc.cluster.local.", "A", "NOERROR\nnew.shop.svc.cluster.local. A 10.96.30.1")
	bed.Delete("v1", "Service", "shop", "new")
	s.await(t, "new.shop.svc.cluster.local.", "A", "NXDOMAIN")
	bed.ApplyYAML("apiVersion: v1\nkind: Namespace\nmetadata: {name: fresh}")
	s.await(t, "fresh.svc.cluster.local.", "A", "NOERROR")
}

// podMetadata asks from a pod, which is one whose address is that of this machine's loopback.
func podMetadata(t *testing.T, bed *clusterbed.Bed) {
	bed.ApplyYAML("apiVersion: v1\nkind: Pod\nmetadata: {name: local, namespace: lab, labels: {app: tester}}\nspec: {nodeName: node-a, containers: [{name: c, image: example.invalid/c}]}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: local, namespace: lab}\nstatus: {phase: Running, podIP: 127.0.0.1, podIPs: [{ip: 127.0.0.1}]}")
	s := serveBlock(t, `metadata
		log . "{name} {/kubernetes/client-namespace} {/kubernetes/client-pod-name} {/kubernetes/client-label/app} {/kubernetes/service} {/kubernetes/parse-error}"
		kubernetes cluster.local {
			pods verified
			startup_timeout 30s
			kubeconfig `+bed.DNSKubeconfig+`
		}`)
	s.ask(t, "cart.shop.svc.cluster.local.", "A")
	s.log.Await(t, "cart.shop.svc.cluster.local. lab local tester cart -")
	s.ask(t, "x.y.cluster.local.", "A")
	s.log.Await(t, "x.y.cluster.local. lab local tester - invalid query name")
	bed.Delete("v1", "Pod", "lab", "local")
}

// rights starts a server that may not read anything, and gives it its rights one by one.
func rights(t *testing.T, bed *clusterbed.Bed) {
	s := serveBlock(t, "kubernetes "+zones+" {\nkubeconfig "+bed.NobodyKubeconfig+"\nstartup_timeout 300ms\n}")
	s.log.Await(t, "starting server with unsynced Kubernetes API")
	for _, resource := range []string{"services", "namespaces", "endpointslices.discovery.k8s.io"} {
		for _, verb := range []string{"list", "watch"} {
			s.log.Await(t, "[ERROR] plugin/kubernetes: the Kubernetes API refuses to "+verb+" "+resource+": ")
		}
	}
	if !strings.Contains(s.log.String(), `User "nobody" cannot list resource "endpointslices" in API group "discovery.k8s.io" at the cluster scope`) {
		t.Errorf("the missing permission is not named:\n%s", s.log)
	}
	grant := func(resources string) {
		bed.ApplyYAML(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: some}
rules: [{apiGroups: ["", discovery.k8s.io], resources: [` + resources + `], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: some}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: some}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody}]`)
	}
	grant("services, namespaces")
	s.await(t, "cart.shop.svc.cluster.local.", "A", "NOERROR\ncart.shop.svc.cluster.local. A 10.96.10.1")
	if got := s.isReady(); got != "503 kubernetes" {
		t.Errorf("/ready without endpoints: %s", got)
	}
	s.expect(t, [][]string{{"db.shop.svc.cluster.local. A", "SERVFAIL"}, {"nothing.shop.svc.cluster.local. A", "SERVFAIL"}})
	grant("services, namespaces, endpointslices")
	eventually.Holds(t, "readiness", func() bool { return s.isReady() == "200 OK" })
	s.expect(t, [][]string{{"db-0.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1"}, {"nothing.shop.svc.cluster.local. A", "NXDOMAIN"}})
}

// readiness starts a server while there is no API.
func readiness(t *testing.T, bed *clusterbed.Bed) {
	bed.StopAPI()
	s := serveBlock(t, "kubernetes "+zones+" {\nkubeconfig "+bed.DNSKubeconfig+"\nfallthrough\nstartup_timeout 700ms\n}\nwhoami")
	s.log.Await(t, "no answer from the Kubernetes API at "+strings.TrimPrefix(bed.URL, "https://"))
	s.log.Await(t, "waiting for Kubernetes API before starting server")
	s.log.Await(t, "starting server with unsynced Kubernetes API")
	s.expect(t, [][]string{{"cart.shop.svc.cluster.local. A", "SERVFAIL"}, {"svc.cluster.local. A", "NOERROR"}})
	if got := s.isReady(); got != "503 kubernetes" {
		t.Errorf("/ready without an API: %s", got)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) {
			if s.isReady() != "200 OK" {
				continue
			}
			// Ready means: everything is there.
			for _, q := range [][3]string{
				{"cart.shop.svc.cluster.local.", "A", "NOERROR\ncart.shop.svc.cluster.local. A 10.96.10.1"},
				{"db-0.db.shop.svc.cluster.local.", "A", "NOERROR\ndb-0.db.shop.svc.cluster.local. A 10.244.20.1"},
			} {
				if got := s.ask(t, q[0], q[1]); got != q[2] {
					t.Errorf("when it is ready, %s is %s", q[0], got)
				}
			}
			return
		}
		t.Error("never ready")
	}()
	bed.StartAgain()
	<-done
}

// outage stops the API of a server that has read all.
func outage(t *testing.T, bed *clusterbed.Bed) {
	s := serve(t, bed, zones)
	kept := [][]string{
		{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
		{"db-0.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1"},
		{"nothing.shop.svc.cluster.local. A", "NXDOMAIN"},
		{"1.10.96.10.in-addr.arpa. PTR", "NOERROR", "~ PTR cart.shop.svc.cluster.local."},
	}
	s.expect(t, kept)
	bed.StopAPI()
	s.log.Await(t, "[WARNING] plugin/kubernetes: lost the Kubernetes API at "+strings.TrimPrefix(bed.URL, "https://"))
	s.expect(t, kept)
	if got := s.isReady(); got != "200 OK" {
		t.Errorf("/ready in an outage: %s", got)
	}
	bed.StartAgain()
	bed.ApplyYAML(slice("10.244.31.1", ""))
	bed.Delete("v1", "Service", "shop", "node-port")
	s.await(t, "portless.shop.svc.cluster.local.", "A", "NOERROR\nportless.shop.svc.cluster.local. A 10.244.31.1")
	s.await(t, "node-port.shop.svc.cluster.local.", "A", "NXDOMAIN")
	s.expect(t, kept)
	s.log.Await(t, "is back after")
	if n := strings.Count(s.log.String(), "lost the Kubernetes API"); n != 1 {
		t.Errorf("the loss was logged %d times:\n%s", n, s.log)
	}
}

// restored brings the API back to what it held a while ago, under a server that has seen what came since.
func restored(t *testing.T, bed *clusterbed.Bed) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\nspec: {clusterIP: %s, ports: [{name: http, port: 80}]}"
	const lost, kept = "lost.shop.svc.cluster.local.", "kept.shop.svc.cluster.local."
	bed.ApplyYAML(fmt.Sprintf(service, "kept", "10.96.40.1"))
	bed.Save()
	s := serve(t, bed, zones)
	s.await(t, kept, "A", "NOERROR\n"+kept+" A 10.96.40.1")
	bed.ApplyYAML(fmt.Sprintf(service, "lost", "10.96.40.2"))
	bed.Delete("v1", "Service", "shop", "kept")
	s.await(t, lost, "A", "NOERROR\n"+lost+" A 10.96.40.2")
	s.await(t, kept, "A", "NXDOMAIN")
	bed.Restore()
	s.log.Await(t, "is back after")
	s.await(t, kept, "A", "NOERROR\n"+kept+" A 10.96.40.1")
	s.await(t, lost, "A", "NXDOMAIN")
	if log := s.log.String(); strings.Contains(log, "[ERROR]") {
		t.Errorf("a server that has just been started was complained of:\n%s", log)
	}
}
