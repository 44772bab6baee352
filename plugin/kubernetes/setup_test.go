package kubernetes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
)

func TestParse(t *testing.T) {
	logtest.Capture(t)
	for _, tc := range []struct{ input, want string }{
		{"kubernetes", ""},
		{"kubernetes {\n}", ""},
		{"kubernetes coredns.local test.local {\nendpoint http://localhost:8080\nnamespaces demo test\nlabels environment in (production, staging, qa),application=nginx\nfallthrough\n}", ""},
		{"kubernetes coredns.local clusterset.local {\nmulticluster clusterset.local\n}", ""},
		{"kubernetes coredns.local {\nmulticluster\n}", ""},
		{"kubernetes coredns.local {\nignore\n}", ""},
		{"kubernetes coredns.local {\nignore empty_service and more\n}", ""},
		{"kubernetes coredns.local {\napiserver_qps 50.0\napiserver_burst 100\napiserver_max_inflight 25\nendpoint_pod_names\nnoendpoints\nttl 0\nttl 3600\n}", ""},
		{"kubernetes coredns.local {\nendpoint\n}", "Testfile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'endpoint'"},
		{"kubernetes coredns.local {\nendpoint ftp://192.0.2.1\n}", `the scheme of endpoint "ftp://192.0.2.1" must be http or https`},
		{"kubernetes coredns.local {\nendpoint HTTPS://localhost:6443\n}", ""},
		{"kubernetes coredns.local {\nendpoint localhost:8080\n}", ""},
		{"kubernetes coredns.local {\nendpoint 192.0.2.1:8080\n}", ""},
		{"kubernetes coredns.local {\nendpoint [2001:db8::1]:8080/api\n}", ""},
		{"kubernetes coredns.local {\ntls a b\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\ntls a b c d\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nkubeconfig\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nkubeconfig file context extraarg\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nnamespaces\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nlabels\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nlabels environment in (production, qa\n}", "unable to parse label selector value: 'environment in (production, qa': "},
		{"kubernetes coredns.local {\nnamespace_labels\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nnamespace_labels a in (\n}", "unable to parse namespace_label selector value: 'a in (': "},
		{"kubernetes coredns.local {\nnamespaces foo bar\nnamespace_labels istio-injection=enabled\n}", "namespaces and namespace_labels cannot both be set"},
		{"kubernetes coredns.local {\npods giant_seed\n}", "wrong value for pods: giant_seed,  must be one of: disabled, verified, insecure"},
		{"kubernetes coredns.local {\npods\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nendpoint_pod_names giant_seed\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nnoendpoints ixnay on the endpointsay\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nzonal us-west-2a\n}", "Wrong argument count"},
		{"kubernetes coredns.local {\nzonal\nnoendpoints\n}", "zonal requires the endpoint cache; remove noendpoints"},
		{"kubernetes coredns.local {\nignore empty_service\nnoendpoints\n}", "ignore empty_service requires the endpoint cache; remove noendpoints"},
		{"kubernetes coredns.local {\nignore ixnay on the endpointsay\n}", "unable to parse ignore value: 'ixnay'"},
		{"kubernetes coredns.local co..redns", `invalid zone "co..redns"`},
		{"kubernetes coredns.local {\nmulticluster cluster..set\n}", `invalid zone "cluster..set"`},
		{"kubernetes coredns.local {\nfallthrough co..redns\n}", `invalid zone "co..redns"`},
		{"kubernetes coredns.local {\nmulticluster clusterset.local\n}", "is not authoritative for the multicluster zone clusterset.local. (authoritative zones: [coredns.local.])"},
		{"kubernetes coredns.local clusterset.local {\nmulticluster clusterset.local test.local\n}", "is not authoritative for the multicluster zone test.local."},
		{"kubernetes coredns.local {\napiserver_qps -10\n}", "apiserver_qps must be >= 0"},
		{"kubernetes coredns.local {\napiserver_qps many\n}", `invalid apiserver_qps "many": `},
		{"kubernetes coredns.local {\napiserver_qps NaN\n}", "apiserver_qps must be >= 0"},
		{"kubernetes coredns.local {\napiserver_burst -5\n}", "apiserver_burst must be >= 0"},
		{"kubernetes coredns.local {\napiserver_burst 5.0\n}", `invalid apiserver_burst "5.0": `},
		{"kubernetes coredns.local {\napiserver_max_inflight -1\n}", "apiserver_max_inflight must be >= 0"},
		{"kubernetes cluster.local {\nttl -1\n}", "ttl must be in range [0, 3600]: -1"},
		{"kubernetes cluster.local {\nttl 3601\n}", "ttl must be in range [0, 3600]: 3601"},
		{"kubernetes cluster.local {\nttl x\n}", `strconv.Atoi: parsing "x": invalid syntax`},
		{"kubernetes cluster.local {\nstartup_timeout soon\n}", "failed to parse startup_timeout: soon, time: invalid duration"},
		{"kubernetes 10.in-addr.arpa in-addr.arpa ip6.arpa", "non-reverse zone name must be used"},
		{"kubernetes cluster.local {\nspiffy\n}", "unknown property 'spiffy'"},
		{"kubernetes coredns.local\nkubernetes cluster.local", "this plugin can only be used once per Server Block"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"dns://cluster.local.:53"}
		_, err := parseBlock(c)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q:\n got %v\nwant %s", tc.input, err, tc.want)
		}
	}
}

func TestParsed(t *testing.T) {
	out := logtest.Capture(t)
	k := configured(t, `kubernetes Cluster.Local 10.0.0.0/24 {
		endpoint http://192.0.2.1:8080 http://192.0.2.2:8080
		tls cert key ca
		namespaces a b
		namespaces c
		labels tier in (b,a),x
		apiserver_qps 1.5
		apiserver_burst 2
		apiserver_max_inflight 3
		pods verified
		endpoint_pod_names
		ttl 30
		fallthrough in-addr.arpa
		ignore empty_service
		zonal
		startup_timeout 1m
	}`)
	c, s := k.clientConfig(), k.storeConfig()
	if c.Endpoint != "http://192.0.2.1:8080" || c.CertFile != "cert" || c.KeyFile != "key" || c.CAFile != "ca" || c.QPS != 1.5 || c.Burst != 2 || c.MaxInflight != 3 || !strings.HasPrefix(c.UserAgent, "CoreDNS/") {
		t.Errorf("client: %+v", c)
	}
	slices.Sort(s.Namespaces)
	if !slices.Equal(s.Namespaces, []string{"a", "b", "c"}) || s.Labels != "tier in (a,b),x" || !s.Endpoints || !s.Pods || s.Multicluster || !s.PodNames || !s.Zones || s.Nodes || s.PodLabels {
		t.Errorf("store: %+v", s)
	}
	if !slices.Equal(k.Zones, []string{"cluster.local.", "0.0.10.in-addr.arpa."}) || k.ttl != 30 || !k.ignoreEmpty || !k.Fall.Through("x.in-addr.arpa.") || k.startupTimeout != time.Minute {
		t.Errorf("%+v", k)
	}
	if line := "Multiple endpoints have been deprecated, only the first specified endpoint 'http://192.0.2.1:8080' is used"; !strings.Contains(out.String(), "plugin/kubernetes: "+line) {
		t.Errorf("logged %q", out)
	}
	if k := configured(t, "kubernetes"); !slices.Equal(k.Zones, []string{"."}) || k.ttl != 5 || k.pods != podsDisabled || k.startupTimeout != 5*time.Second || k.storeConfig().Namespaces != nil {
		t.Errorf("defaults: %+v", k.options)
	}
}

// TestParseStanza reads several stanzas of another plugin's directive.
func TestParseStanza(t *testing.T) {
	c := caddy.NewTestController("dns", `others cluster.local {
		endpoint http://192.0.2.1
		pods verified
	}
	others example.org example.net {
		fallthrough
		endpoint http://192.0.2.2
	}
	others {
	}
	others bare
	`)
	c.ServerBlockKeys = []string{"dns://example.com.:53"}
	var got []string
	for c.Next() {
		k, err := ParseStanza(c)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(k.Zones, k.APIServerList, k.pods, k.Fall.Zones))
	}
	want := []string{"[cluster.local.] [http://192.0.2.1] 2 []", "[example.org. example.net.] [http://192.0.2.2] 0 [.]", "[example.com.] [] 0 []", "[bare.] [] 0 []"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	c = caddy.NewTestController("dns", "others a {\n}\nothers b {\nttl x\n}")
	c.Next()
	ParseStanza(c)
	c.Next()
	if _, err := ParseStanza(c); err == nil || !strings.HasPrefix(err.Error(), "Testfile:4 - Error during parsing: strconv.Atoi") {
		t.Errorf("got %v", err)
	}
}

func TestSetup(t *testing.T) {
	logtest.Capture(t)
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tc := range []struct{ input, want string }{
		{"kubernetes cluster.local", "plugin/kubernetes: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"},
		{"kubernetes cluster.local {\nkubeconfig " + missing + "\n}", "plugin/kubernetes: stat " + missing + ": no such file or directory"},
		{"kubernetes cluster.local {\nkubeconfig " + missing + " context\n}", "no such file or directory"},
		{"kubernetes cluster.local {\nendpoint http://192.0.2.1\ntls a b c\n}", "plugin/kubernetes: "},
		{"kubernetes a\nkubernetes b", "plugin/kubernetes: Testfile:2 - Error during parsing: this plugin can only be used once per Server Block: 'kubernetes' stands at Testfile:1 already"},
		{"kubernetes a {\nttl 5000\n}", "plugin/kubernetes: Testfile:2 - Error during parsing: ttl must be in range [0, 3600]: 5000"},
		{"kubernetes cluster.local {\nendpoint http://192.0.2.1\n}", ""},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), "plugin/kubernetes: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.input, err)
			continue
		}
		if h, ok := dnsserver.GetConfig(c).Plugin[0](plugin.HandlerFunc(nil)).(*Kubernetes); !ok || h.Next == nil || h.APIConn == nil || h.Ready() {
			t.Errorf("%q: %+v", tc.input, h)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}
