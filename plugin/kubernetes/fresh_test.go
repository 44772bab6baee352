package kubernetes

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/store"

	"github.com/miekg/dns"
)

// history makes random objects out of few names and addresses, so that they meet, and remembers those that are left.
type history struct {
	*rand.Rand
	left map[string]string // kind and name: the object
}

func (h *history) pick(all ...string) string { return all[h.IntN(len(all))] }

// step puts an object into s, or deletes it.
func (h *history) step(t *testing.T, s *store.Store) {
	name, number := h.pick("a", "b"), h.IntN(20)
	key, spec := "Namespace ns", ""
	meta := "metadata: {name: ns}"
	switch h.IntN(8) {
	case 0, 1:
		key, meta = "Service "+name, "metadata: {name: "+name+", namespace: ns}"
		ip := fmt.Sprintf("192.0.2.%d", 100+int(name[0]))
		spec = "spec: {" + h.pick("clusterIP: None", "clusterIP: "+ip, "type: ExternalName, externalName: "+h.pick("a", "b")+".ns.svc.cluster.local") +
			", ports: [" + h.pick("", "{name: http, port: 80, protocol: TCP}", "{port: 53, protocol: UDP}") + "]}"
	case 2, 3, 4, 5:
		key = fmt.Sprintf("EndpointSlice s%d", number)
		meta = fmt.Sprintf("metadata: {name: s%d, namespace: ns, labels: {kubernetes.io/service-name: %s}}", number, name)
		spec = fmt.Sprintf("ports: [{name: http, port: %s, protocol: TCP}]\nendpoints: [{addresses: [192.0.2.%d]%s}, {addresses: [192.0.2.%d], hostname: h, conditions: {ready: %s}}]",
			h.pick("80", "81"), h.IntN(4), h.pick("", ", targetRef: {name: p}"), h.IntN(4), h.pick("true", "false", "null"))
	case 6:
		key, meta = fmt.Sprintf("Pod p%d", number), fmt.Sprintf("metadata: {name: p%d, namespace: ns}", number)
		spec = fmt.Sprintf("status: {phase: %s, podIP: 192.0.2.%d}", h.pick("Running", "Failed"), h.IntN(4))
	}
	kind, _, _ := strings.Cut(key, " ")
	h.left[key] = "kind: " + kind + "\n" + meta + "\n" + spec
	o := leanObject(t, h.left[key])
	if h.IntN(3) > 0 {
		s.Put(o)
		return
	}
	s.Delete(o)
	delete(h.left, key)
}

// What a store answers that objects have come to and gone from is what one does that was given those alone that are left.
func TestAnswersForgetThePast(t *testing.T) {
	const stanza = "kubernetes cluster.local in-addr.arpa {\npods verified\nendpoint_pod_names\n}"
	names := []string{"ns.svc.cluster.local.", "cluster.local."}
	for i := range 4 {
		names = append(names, fmt.Sprintf("%d.2.0.192.in-addr.arpa.", i), fmt.Sprintf("192-0-2-%d.ns.pod.cluster.local.", i))
		for _, service := range []string{"a", "b"} {
			names = append(names, fmt.Sprintf("192-0-2-%d.%s.ns.svc.cluster.local.", i, service))
			names = append(names, []string{"", "h.", "p.", "_http._tcp."}[i]+service+".ns.svc.cluster.local.")
		}
	}
	for seed := range uint64(3) {
		h := &history{rand.New(rand.NewPCG(seed, 3)), map[string]string{}}
		k := configured(t, stanza)
		storeOf(k).PutDone()
		for range 40 {
			for range 25 {
				h.step(t, storeOf(k))
			}
			fresh := configured(t, stanza)
			storeOf(fresh).PutDone()
			for _, key := range slices.Sorted(maps.Keys(h.left)) {
				storeOf(fresh).Put(leanObject(t, h.left[key]))
			}
			sameAnswers(t, k, fresh, names)
		}
	}
}

func sameAnswers(t *testing.T, k, fresh *Kubernetes, names []string) {
	t.Helper()
	for _, name := range names {
		for _, typ := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypePTR, dns.TypeCNAME} {
			if got, want := describe(ask(t, k, name, typ)), describe(ask(t, fresh, name, typ)); got != want {
				t.Fatalf("%s\n%s\na fresh store says\n%s", questionText(name, typ), got, want)
			}
		}
	}
}
