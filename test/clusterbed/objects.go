package clusterbed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func newREST(cfg *rest.Config) (*rest.RESTClient, error) {
	cfg.GroupVersion = &schema.GroupVersion{Version: "v1"}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	return rest.RESTClientFor(cfg)
}

// header is what is needed of an object to know its path.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status json.RawMessage `json:"status"`
}

// path returns where the API has the object. Something with a status
// and no spec is for the status subresource.
func (h *header) path() string {
	var b strings.Builder
	if strings.Contains(h.APIVersion, "/") {
		b.WriteString("/apis/" + h.APIVersion)
	} else {
		b.WriteString("/api/" + h.APIVersion)
	}
	if h.Metadata.Namespace != "" {
		b.WriteString("/namespaces/" + h.Metadata.Namespace)
	}
	plural := strings.ToLower(h.Kind) + "s"
	if strings.HasSuffix(h.Kind, "s") {
		plural = strings.ToLower(h.Kind) + "es"
	}
	b.WriteString("/" + plural + "/" + h.Metadata.Name)
	if h.Status != nil && h.Spec == nil {
		b.WriteString("/status")
	}
	return b.String()
}

// Apply applies the objects in YAML files, in their order. Names without a folder are those of test/cluster.
func (b *Bed) Apply(files ...string) {
	b.tb.Helper()
	for _, f := range files {
		if filepath.Base(f) == f {
			f = Fixture(f)
		}
		text, err := os.ReadFile(f)
		if err != nil {
			b.tb.Fatalf("applying %s: %v", f, err)
		}
		b.ApplyYAML(string(text))
	}
}

// ApplyYAML applies objects, which are separated by "---" lines.
func (b *Bed) ApplyYAML(text string) {
	b.tb.Helper()
	for i, doc := range strings.Split("\n"+text, "\n---") {
		obj, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			b.tb.Fatalf("object %d: %v", i, err)
		}
		if string(obj) == "null" {
			continue
		}
		if err := b.apply(obj); err != nil {
			b.tb.Fatalf("object %d: %v", i, err)
		}
	}
}

func (b *Bed) apply(obj []byte) error {
	var h header
	if err := json.Unmarshal(obj, &h); err != nil {
		return err
	}
	err := b.http.Patch(types.ApplyPatchType).AbsPath(h.path()).
		Param("fieldManager", "testbed").Param("force", "true").Param("fieldValidation", "Strict").
		Body(obj).Do(context.Background()).Error()
	if err != nil {
		return fmt.Errorf("apply %s %s/%s: %w", h.Kind, h.Metadata.Namespace, h.Metadata.Name, err)
	}
	return nil
}

// Delete deletes an object, given like "v1", "Service", namespace and name.
func (b *Bed) Delete(apiVersion, kind, namespace, name string) {
	b.tb.Helper()
	h := header{APIVersion: apiVersion, Kind: kind}
	h.Metadata.Namespace, h.Metadata.Name = namespace, name
	if err := b.http.Delete().AbsPath(h.path()).Param("gracePeriodSeconds", "0").Do(context.Background()).Error(); err != nil {
		b.tb.Fatalf("delete %s %s/%s: %v", kind, namespace, name, err)
	}
}

// Get returns what the API answers to the path, and whether it did.
func (b *Bed) Get(path string) ([]byte, error) {
	return b.http.Get().AbsPath(path).DoRaw(context.Background())
}

// Token returns a token of a service account.
func (b *Bed) Token(namespace, account string) string {
	b.tb.Helper()
	out, err := b.http.Post().
		AbsPath("/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token").
		SetHeader("Content-Type", "application/json").
		Body([]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)).
		DoRaw(context.Background())
	if err != nil {
		b.tb.Fatalf("token of %s/%s: %v", namespace, account, err)
	}
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Status.Token == "" {
		b.tb.Fatalf("token of %s/%s: %v in %s", namespace, account, err, out)
	}
	return answer.Status.Token
}
