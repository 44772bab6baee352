// Command check renders the chart beside it and looks at every manifest as the API server of Kubernetes does: a field that there is not, or
// one that stands there twice, is an error. It prints what was rendered.
//
//	check -chart ../coredns [-values FILE] [-running REPLICAS]
//
// It is a module of its own: Helm and the types of Kubernetes are none of the server's business. Start at main.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	folder := flag.String("chart", "../coredns", "Folder of the chart")
	values := flag.String("values", "", "File with values over those of the chart")
	running := flag.Int("running", -1, "Replicas of the Deployment that an upgrade finds; -1 is none")
	flag.Parse()
	rendered, err := render(*folder, *values, *running)
	if err == nil {
		for _, m := range rendered {
			fmt.Printf("---\n%s\n", strings.TrimSpace(m))
		}
		err = check(rendered)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// render is the manifests of the chart, sorted by the files that they are from. Templates that come out empty are left out. If running is
// not negative, it is an upgrade of a release whose Deployment has so many replicas.
func render(folder, file string, running int) (manifests []string, err error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	given := chartutil.Values{}
	if file != "" {
		if given, err = chartutil.ReadValuesFile(file); err != nil {
			return nil, err
		}
	}
	options := chartutil.ReleaseOptions{Name: "coredns", Namespace: "kube-system", IsInstall: running < 0, IsUpgrade: running >= 0, Revision: 1}
	all, err := chartutil.ToRenderValues(c, given, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if running >= 0 && err == nil {
		files, err = engine.RenderWithClientProvider(c, all, &cluster{replicas: running})
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		for part := range strings.SplitSeq("\n"+files[name], "\n---") {
			if strings.TrimSpace(part) != "" {
				manifests = append(manifests, strings.TrimSpace(part))
			}
		}
	}
	return manifests, nil
}

// foreign are kinds whose schema is not Kubernetes' own.
var foreign = []string{"kind: ServiceMonitor\n"}

// check reads each manifest into its type.
func check(manifests []string) error {
	s := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, m := range manifests {
		if slices.ContainsFunc(foreign, func(kind string) bool { return strings.Contains(m, kind) }) {
			continue
		}
		if _, _, err := s.Decode([]byte(m), nil, nil); err != nil {
			return fmt.Errorf("%w\n%s", err, m)
		}
	}
	return nil
}
