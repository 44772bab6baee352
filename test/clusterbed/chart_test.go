package clusterbed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/test/clusterbed"
)

// monitors defines ServiceMonitor, which is the Prometheus operator's and not Kubernetes' own, with what the chart
// uses of it.
const monitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              jobLabel: {type: string}
              selector:
                type: object
                properties: {matchLabels: {type: object, additionalProperties: {type: string}}}
              namespaceSelector:
                type: object
                properties: {matchNames: {type: array, items: {type: string}}}
              endpoints:
                type: array
                items: {type: object, properties: {port: {type: string}, interval: {type: string}}}
`

// TestChart has a real API server take what the Helm chart renders, each field and value of it checked, and reads back
// what the values said. One upgrade follows the other.
func TestChart(t *testing.T) {
	type field struct{ path, want string }
	const (
		deployment = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
		services   = "/api/v1/namespaces/kube-system/services/"
		scaler     = "/apis/autoscaling/v2/namespaces/kube-system/horizontalpodautoscalers/coredns"
		role       = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns"
		monitor    = "/apis/monitoring.coreos.com/v1/namespaces/kube-system/servicemonitors/coredns"
	)
	const all = `
podAnnotations: {a: b}
multicluster: true
autoscale: {enabled: true, max: 7}
serviceMonitor: {enabled: true, interval: 17s, labels: {release: prom}}
image: {repository: registry.example.org/dns, tag: v3}
affinity: {nodeAffinity: {}}
imagePullSecrets: [{name: x}]
`
	bed := clusterbed.Start(t, clusterbed.Options{})
	bed.ApplyYAML(monitors)
	served(t, bed, "/apis/monitoring.coreos.com/v1/servicemonitors")
	for _, tc := range []struct {
		values string
		fields []field
	}{
		{"", []field{{deployment, `"replicas":2`}, {services + "kube-dns", `"clusterIP":"10.96.0.10"`}}},
		{"replicas: 3", []field{{deployment, `"replicas":3`}}},
		{all, []field{
			{deployment, `"image":"registry.example.org/dns:v3"`}, {deployment, `"a":"b"`}, {scaler, `"maxReplicas":7`},
			{role, `"serviceimports"`}, {monitor, `"interval":"17s"`}, {monitor, `"release":"prom"`},
		}},
		{"serviceName: resolver\nclusterIP: \"\"", []field{{services + "resolver", `"clusterIP":"10.`}}},
	} {
		bed.ApplyYAML(rendered(t, tc.values))
		for _, f := range tc.fields {
			if out, err := bed.Get(f.path); err != nil || !strings.Contains(string(out), f.want) {
				t.Errorf("values %q: no %s in %s: %s, %v", tc.values, f.want, f.path, out, err)
			}
		}
	}
}

// unfetched is what the go tool says when it has no way to a module that it needs.
var unfetched = regexp.MustCompile(`proxy\.golang\.org|dial tcp|module lookup disabled`)

// rendered is the chart with values over its own. The test is skipped where Helm is not there and cannot be fetched.
func rendered(t *testing.T, values string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", "deploy", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", ".", "-chart", filepath.Join(folder, "coredns"), "-values", file)
	cmd.Dir = filepath.Join(folder, "check")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	switch {
	case err == nil:
		return string(out)
	case unfetched.MatchString(complaints.String()):
		t.Skip("Helm cannot be fetched: go mod download -C deploy/helm/check with a network")
	}
	t.Fatalf("%v: %s", err, &complaints)
	return ""
}

// served waits until the API has a type that was defined just now.
func served(t *testing.T, bed *clusterbed.Bed, path string) {
	t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err = bed.Get(path); err == nil {
			return
		}
	}
	t.Fatalf("%s is not served: %v", path, err)
}
