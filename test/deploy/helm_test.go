package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	"github.com/coredns/caddy"
	"sigs.k8s.io/yaml"
)

// chart renders deploy/helm/coredns with values over its own, and with what else args tell. What it renders has been held against the types
// of Kubernetes.
func chart(t *testing.T, values string, args ...string) (text string, err error) {
	t.Helper()
	tool(t, "go", "golang")
	folder, err := filepath.Abs(here("helm"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	// The types of Kubernetes are compiled as test/cluster/build.sh does it, and are of the same version: once for both.
	cmd := exec.Command("go", append([]string{"run", "-gcflags=k8s.io/...=-N -l", ".", "-chart", filepath.Join(folder, "coredns"), "-values", file}, args...)...)
	cmd.Dir = filepath.Join(folder, "check")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil && unreachable.MatchString(complaints.String()) {
		t.Skip("Helm cannot be fetched: go mod download -C deploy/helm/check with a network")
	}
	if err != nil {
		return complaints.String(), err
	}
	return string(out), nil
}

// The chart renders what the manifests have, and with values what they say. Its manifests are Kubernetes'.
func TestChart(t *testing.T) {
	plain := []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}
	for _, tc := range []struct {
		name, values string
		kinds        []string
		has, not     []string
	}{
		{"as it stands", "", plain, []string{"clusterIP: 10.96.0.10\n", "replicas: 2\n", "name: kube-dns\n"}, []string{"serviceimports"}},
		{"scaled and watched", "autoscale: {enabled: true, max: 7}\nserviceMonitor: {enabled: true, labels: {release: prom}}",
			append(slices.Clone(plain), "HorizontalPodAutoscaler", "ServiceMonitor"), []string{"maxReplicas: 7\n", "release: prom\n"}, []string{"replicas: 2\n"}},
		{"a second server", "serviceName: resolver\nlabel: resolver\nclusterIP: \"\"\nreplicas: 1\nimage: {repository: registry.example.org/dns, tag: v3}",
			slices.DeleteFunc(slices.Clone(plain), func(k string) bool { return k == "PodDisruptionBudget" }),
			[]string{"name: resolver\n", "k8s-app: resolver\n", `image: "registry.example.org/dns:v3"`}, []string{"clusterIP", "kube-dns"}},
		{"all the rest", "multicluster: true\npodAnnotations: {a: b}\naffinity: {nodeAffinity: {}}\nimagePullSecrets: [{name: x}]\ntolerations: []",
			plain, []string{"serviceimports", "a: b\n", "- name: x\n"}, []string{"tolerations"}},
	} {
		text, err := chart(t, tc.values)
		if err != nil {
			t.Errorf("%s: %v: %s", tc.name, err, text)
			continue
		}
		slices.Sort(tc.kinds)
		if got := kinds(objects(t, strings.TrimPrefix(text, "---\n"))); !slices.Equal(got, tc.kinds) {
			t.Errorf("%s: it renders %v, want %v", tc.name, got, tc.kinds)
		}
		for _, want := range tc.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", tc.name, want, text)
			}
		}
		for _, bad := range tc.not {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %q in\n%s", tc.name, bad, text)
			}
		}
	}
	if text, err := chart(t, "tolerations: [{kee: x}]"); err == nil || !strings.Contains(text, `unknown field "spec.template.spec.tolerations[0].kee"`) {
		t.Errorf("a field that there is not: %v, %s", err, text)
	}
}

// An upgrade leaves the autoscaler's replicas alone. Without the field there would be one, until the autoscaler sees to it: Kubernetes takes
// what is not said any more for its default. Where there is no autoscaler, the values say how many there are.
func TestChartUpgrade(t *testing.T) {
	for values, want := range map[string]string{"autoscale: {enabled: true}": "  replicas: 5\n", "replicas: 3": "  replicas: 3\n"} {
		text, err := chart(t, values, "-running", "5")
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if strings.Count(text, "  replicas: ") != 1 || !strings.Contains(text, want) {
			t.Errorf("%s: not %q in\n%s", values, want, text)
		}
	}
}

// The chart is what the folder's manifests are, but for its labels, which Helm asks for, and the tag of the image.
func TestChartIsManifests(t *testing.T) {
	text, err := chart(t, "")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	manifests := ""
	for _, name := range []string{"configmap", "deployment", "poddisruptionbudget", "rbac", "service"} {
		manifests += "\n---\n" + read(t, here(name+".yaml"))
	}
	want, got := canonical(t, manifests), canonical(t, text)
	for key, w := range want {
		if got[key] != w {
			t.Errorf("%s is\n%s\nin the chart, and\n%s\nas a manifest", key, got[key], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d objects in the chart, %d manifests", len(got), len(want))
	}
}

// canonical is objects as JSON, by kind and name.
func canonical(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for part := range strings.SplitSeq("\n"+text, "\n---\n") {
		part = regexp.MustCompile(`(?m)^ +app\.kubernetes\.io/.*\n`).ReplaceAllString(part+"\n", "")
		part = strings.Replace(part, `image: "coredns:`+coremain.CoreVersion+`"`, "image: coredns", 1)
		var o map[string]any
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v: %s", err, part)
		}
		if o == nil {
			continue
		}
		if data, ok := o["data"].(map[string]any); ok {
			data["Corefile"] = strings.TrimSpace(data["Corefile"].(string))
		}
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all[o["kind"].(string)+" "+o["metadata"].(map[string]any)["name"].(string)] = string(b)
	}
	return all
}

// The Corefile of the manifests can be served.
func TestClusterCorefile(t *testing.T) {
	var m struct{ Data struct{ Corefile string } }
	if err := yaml.Unmarshal([]byte(read(t, here("configmap.yaml"))), &m); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/etc/resolv.conf", "192.0.2.1", "pods insecure", "pods insecure\nendpoint http://localhost:8001").Replace(m.Data.Corefile)
	if err := dnsserver.Validate(caddy.CaddyfileInput{Contents: []byte(text), Filepath: "Corefile", ServerTypeName: "dns"}); err != nil {
		t.Error(err)
	}
}
