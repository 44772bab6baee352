package deploy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cluster is as much of Kubernetes' API as kubectl needs to apply the folder: objects by path, created and merged. A
// Deployment without a number of replicas has one.
type cluster struct {
	mu      sync.Mutex
	objects map[string]map[string]any
}

const theDeployment = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"

// groups is the kinds that the folder has, by the path of their API: name, kind, and whether they lie in a namespace.
var groups = map[string][]map[string]any{
	"/api/v1": {
		{"name": "services", "kind": "Service", "namespaced": true}, {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
		{"name": "serviceaccounts", "kind": "ServiceAccount", "namespaced": true},
	},
	"/apis/apps/v1":        {{"name": "deployments", "kind": "Deployment", "namespaced": true}},
	"/apis/policy/v1":      {{"name": "poddisruptionbudgets", "kind": "PodDisruptionBudget", "namespaced": true}},
	"/apis/autoscaling/v2": {{"name": "horizontalpodautoscalers", "kind": "HorizontalPodAutoscaler", "namespaced": true}},
	"/apis/rbac.authorization.k8s.io/v1": {
		{"name": "clusterroles", "kind": "ClusterRole", "namespaced": false}, {"name": "clusterrolebindings", "kind": "ClusterRoleBinding", "namespaced": false},
	},
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code, body := http.StatusOK, c.discovered(r.URL.Path)
	switch {
	case body != nil:
	case r.Method == http.MethodPost:
		var o map[string]any
		given, _ := io.ReadAll(r.Body)
		if json.Unmarshal(given, &o) != nil {
			code, body = http.StatusBadRequest, map[string]any{}
			break
		}
		path := r.URL.Path + "/" + o["metadata"].(map[string]any)["name"].(string)
		c.objects[path], code, body = o, http.StatusCreated, o
	case c.objects[r.URL.Path] == nil:
		code, body = http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
	case r.Method == http.MethodPatch:
		var p map[string]any
		given, _ := io.ReadAll(r.Body)
		if json.Unmarshal(given, &p) != nil {
			code, body = http.StatusBadRequest, map[string]any{}
			break
		}
		merge(c.objects[r.URL.Path], p)
		fallthrough
	default:
		body = c.objects[r.URL.Path]
	}
	if spec, ok := body["spec"].(map[string]any); ok && body["kind"] == "Deployment" && spec["replicas"] == nil {
		spec["replicas"] = 1.0
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// discovered is what the API tells of itself at a path, nil if that is no such path.
func (c *cluster) discovered(path string) map[string]any {
	if all := groups[path]; all != nil {
		for _, r := range all {
			r["verbs"] = []string{"create", "get", "patch"}
		}
		_, version, _ := strings.Cut(strings.TrimPrefix(path, "/api"), "/")
		return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": all}
	}
	switch path {
	case "/api":
		return map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		var list []any
		for path := range groups {
			if both, ok := strings.CutPrefix(path, "/apis/"); ok {
				name, version, _ := strings.Cut(both, "/")
				v := map[string]string{"groupVersion": both, "version": version}
				list = append(list, map[string]any{"name": name, "versions": []any{v}, "preferredVersion": v})
			}
		}
		return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list}
	}
	return nil
}

// merge changes o as p says (RFC 7386).
func merge(o, p map[string]any) {
	for name, v := range p {
		below, isObject := v.(map[string]any)
		old, wasObject := o[name].(map[string]any)
		switch {
		case v == nil:
			delete(o, name)
		case isObject && wasObject:
			merge(old, below)
		default:
			o[name] = v
		}
	}
}

// scale has the number of replicas changed, as the autoscaler does.
func (c *cluster) scale(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[theDeployment]["spec"].(map[string]any)["replicas"] = float64(n)
}

func (c *cluster) replicas(t *testing.T) int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	spec, _ := c.objects[theDeployment]["spec"].(map[string]any)
	n, ok := spec["replicas"].(float64)
	if !ok {
		t.Fatalf("there is no deployment: %v", c.objects)
	}
	return int(n)
}

// How the README says that a running deployment is given to the autoscaler, its replicas stay as they are, then and
// when the folder is applied again. Applied alone, the folder would make them one: kubectl takes out what it had put in.
func TestScalingKeepsReplicas(t *testing.T) {
	kubectl := tool(t, "kubectl", "kubectl: https://kubernetes.io/docs/tasks/tools")
	var told []string
	_, section, _ := strings.Cut(read(t, here("README.md")), "## Scaling\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if rest, ok := strings.CutPrefix(line, "    kubectl "); ok {
			told = append(told, strings.TrimSpace(rest))
		}
	}
	const apply = "apply -k deploy"
	for _, tc := range []struct {
		commands []string
		want     int
	}{{told, 5}, {[]string{apply}, 1}} {
		c := &cluster{objects: map[string]map[string]any{}}
		server := httptest.NewServer(c)
		defer server.Close()
		home := t.TempDir()
		file := filepath.Join(home, "deploy", "kustomization.yaml")
		if err := os.CopyFS(filepath.Dir(file), os.DirFS(here())); err != nil {
			t.Fatal(err)
		}
		do := func(command string) {
			t.Helper()
			args := append(strings.Fields(command), "--server", server.URL, "--cache-dir", home)
			if strings.HasPrefix(command, "apply") {
				args = append(args, "--validate=false")
			}
			cmd := exec.Command(kubectl, args...)
			cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("kubectl %s: %v: %s", command, err, out)
			}
		}
		do(apply)
		if n := c.replicas(t); n != 2 {
			t.Fatalf("at first there are %d replicas", n)
		}
		c.scale(5)
		text := strings.ReplaceAll(read(t, file), "# components:\n# - autoscale", "components:\n- autoscale")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range tc.commands {
			do(command)
		}
		if n := c.replicas(t); n != tc.want {
			t.Errorf("after %q there are %d replicas, want %d", tc.commands, n, tc.want)
		}
		c.scale(6)
		if do(apply); c.replicas(t) != 6 {
			t.Errorf("after %q and one more apply there are %d replicas, want 6", tc.commands, c.replicas(t))
		}
	}
}
