package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object is what the tests look at of a manifest.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas  *int
		Ports     []struct{ Name string }
		Endpoints []struct{ Port string }
	}
}

// objects parses manifests that "---" parts.
func objects(t *testing.T, text string) (all []object) {
	t.Helper()
	for part := range strings.SplitSeq(text, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v: %s", err, part)
		}
		all = append(all, o)
	}
	return all
}

// The folder renders as it stands, and with the component that scales: the deployment has no number of replicas of its own then.
func TestKustomize(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed: https://kubernetes.io/docs/tasks/tools")
	}
	folder := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(folder, os.DirFS(here())); err != nil {
		t.Fatal(err)
	}
	plain := objects(t, run(t, kubectl, "kustomize", folder))
	file := filepath.Join(folder, "kustomization.yaml")
	text := strings.ReplaceAll(read(t, file), "# components:\n# - autoscale", "components:\n- autoscale")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	scaled := objects(t, run(t, kubectl, "kustomize", folder))

	want := []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount"}
	if got := kinds(plain); !slices.Equal(got, want) {
		t.Errorf("it renders %v, want %v", got, want)
	}
	want = slices.Insert(want, 4, "HorizontalPodAutoscaler")
	if got := kinds(scaled); !slices.Equal(got, want) {
		t.Errorf("with autoscale it renders %v, want %v", got, want)
	}
	if n := replicas(plain); n == nil || *n != 2 {
		t.Errorf("the deployment has %v replicas", n)
	}
	if n := replicas(scaled); n != nil {
		t.Errorf("the deployment that is scaled has %d replicas of its own", *n)
	}
}

func kinds(all []object) (names []string) {
	for _, o := range all {
		names = append(names, o.Kind)
	}
	slices.Sort(names)
	return names
}

func replicas(all []object) *int {
	i := slices.IndexFunc(all, func(o object) bool { return o.Kind == "Deployment" })
	if i < 0 {
		return nil
	}
	return all[i].Spec.Replicas
}

// The monitor asks a port that the service has.
func TestServiceMonitor(t *testing.T) {
	monitor, service := objects(t, read(t, here("monitoring", "servicemonitor.yaml")))[0], objects(t, read(t, here("service.yaml")))[0]
	if monitor.Kind != "ServiceMonitor" || len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("it is %+v", monitor)
	}
	for _, p := range service.Spec.Ports {
		if p.Name == monitor.Spec.Endpoints[0].Port {
			return
		}
	}
	t.Errorf("the service has no port %s", monitor.Spec.Endpoints[0].Port)
}
