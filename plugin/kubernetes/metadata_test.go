package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/ready"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var (
	_ metadata.Provider = (*Kubernetes)(nil)
	_ ready.Readiness   = (*Kubernetes)(nil)
	_ interface {
		AutoPath(request.Request) []string
	} = (*Kubernetes)(nil)
)

// from is a query from a client.
func from(client, qname string) request.Request {
	w := &test.ResponseWriter{RemoteIP: client}
	return request.Request{W: w, Req: new(dns.Msg).SetQuestion(qname, dns.TypeA)}
}

func TestMetadata(t *testing.T) {
	const plain, verified = "kubernetes cluster.local", "kubernetes cluster.local {\npods verified\n}"
	const client = " client-label/app=cart client-label/track=stable client-namespace=shop client-pod-name=cart-1"
	for _, tc := range []struct{ stanza, client, qname, want string }{
		{plain, "10.244.10.1", "cart.shop.svc.cluster.local.", "endpoint= kind=svc namespace=shop port-name= protocol= service=cart"},
		{plain, "10.244.10.1", "Cart.Shop.Svc.Cluster.Local.", "endpoint= kind=svc namespace=shop port-name= protocol= service=cart"},
		{plain, "10.244.10.1", "_http._tcp.cart.shop.svc.cluster.local.", "endpoint= kind=svc namespace=shop port-name=http protocol=tcp service=cart"},
		{plain, "10.244.10.1", "x.cart.shop.svc.cluster.local.", "endpoint=x kind=svc namespace=shop port-name= protocol= service=cart"},
		{plain, "10.244.10.1", "1-2-3-4.shop.pod.cluster.local.", "endpoint= kind=pod namespace=shop port-name= protocol= service=1-2-3-4"},
		{plain, "10.244.10.1", "cluster.local.", "endpoint= kind= namespace= port-name= protocol= service="},
		{plain, "10.244.10.1", "x.y.cluster.local.", "parse-error=invalid query name"},
		{plain, "10.244.10.1", "example.org.", ""},
		{verified, "10.244.10.1", "example.org.", client[1:]},
		{verified, "fd00:244::a:1", "x.y.cluster.local.", client[1:] + " parse-error=invalid query name"},
		{verified, "192.0.2.77", "example.org.", ""}, // two pods share it
		{verified, "192.0.2.99", "example.org.", ""},
		{"kubernetes cluster.local {\nzonal\n}", "", "a.b.pin._zone.db.shop.svc.cluster.local.", "endpoint= kind=svc namespace=shop port-name= protocol= service=db zone=a.b"},
		{"kubernetes cluster.local {\nmulticluster cluster.local\n}", "", "db-0.east.db.shop.svc.cluster.local.", "cluster=east endpoint=db-0 kind=svc namespace=shop port-name= protocol= service=db"},
	} {
		k := serving(t, tc.stanza)
		ctx := k.Metadata(metadata.ContextWithMetadata(t.Context()), from(tc.client, tc.qname))
		var got []string
		for label, f := range metadata.ValueFuncs(ctx) {
			got = append(got, strings.TrimPrefix(label, "kubernetes/")+"="+f())
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.client, tc.qname, strings.Join(got, " "), tc.want)
		}
	}
	k := serving(t, verified)
	if ctx := k.Metadata(t.Context(), from("10.244.10.1", "cart.shop.svc.cluster.local.")); ctx != t.Context() {
		t.Error("another context without the metadata plugin")
	}
}

func TestAutoPath(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 192.0.2.1\nsearch Example.org sub.example.net.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer func(was string) { resolvConf = was }(resolvConf)
	resolvConf = conf
	const host = " example.org. sub.example.net. "
	for _, tc := range []struct{ stanza, client, qname, want string }{
		{"kubernetes cluster.local {\npods verified\n}", "10.244.20.2", "x.shop.svc.cluster.local.", "shop.svc.cluster.local. svc.cluster.local. cluster.local." + host},
		{"kubernetes cluster.local {\npods verified\n}", "fd00:244::a:1", "x.CLUSTER.local.", "shop.svc.cluster.local. svc.cluster.local. cluster.local." + host},
		{"kubernetes . {\npods verified\n}", "10.244.20.2", "example.org.", "shop.svc. svc. ." + host},
		{"kubernetes cluster.local {\npods verified\n}", "10.244.20.2", "example.org.", "none"},
		{"kubernetes cluster.local {\npods verified\n}", "10.9.9.9", "x.cluster.local.", "none"},
		{"kubernetes cluster.local {\npods verified\n}", "192.0.2.77", "x.cluster.local.", "none"}, // two pods share it
		{"kubernetes cluster.local {\npods insecure\n}", "10.244.20.2", "x.cluster.local.", "none"},
	} {
		k := serving(t, tc.stanza)
		got := "none"
		if search := k.AutoPath(from(tc.client, tc.qname)); search != nil {
			got = strings.Join(search, " ")
		}
		if got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.client, tc.qname, got, tc.want)
		}
	}
	k := configured(t, "kubernetes cluster.local {\npods verified\n}")
	if got := k.AutoPath(from("10.244.20.2", "x.cluster.local.")); got != nil {
		t.Errorf("before the sync: %q", got)
	}
	k.APIConn = foreign{}
	if got := k.AutoPath(from("10.240.0.1", "x.cluster.local.")); len(got) != 6 || got[0] != "other.svc.cluster.local." {
		t.Errorf("with another's controller: %q", got)
	}
	resolvConf = filepath.Join(t.TempDir(), "missing")
	k = serving(t, "kubernetes cluster.local {\npods verified\n}")
	if got := k.AutoPath(from("10.244.20.2", "x.cluster.local.")); len(got) != 4 || got[3] != "" {
		t.Errorf("without a resolv.conf: %q", got)
	}
}

func TestPodIndex(t *testing.T) {
	k := serving(t, "kubernetes cluster.local {\npods verified\n}")
	for ip, want := range map[string]string{
		"10.244.10.1":   "shop/cart-1 10.244.10.1 [10.244.10.1 fd00:244::a:1] map[app:cart track:stable];",
		"fd00:244::a:1": "shop/cart-1 10.244.10.1 [10.244.10.1 fd00:244::a:1] map[app:cart track:stable];",
		"192.0.2.77":    "lab/agent-1 192.0.2.77 [192.0.2.77] map[];lab/agent-2 192.0.2.77 [192.0.2.77] map[];",
		"10.9.9.9":      "",
		"nonsense":      "",
	} {
		var got []string
		for _, p := range k.APIConn.PodIndex(ip) {
			got = append(got, fmt.Sprintf("%s/%s %s %v %v;", p.Namespace, p.Name, p.PodIP, p.PodIPs, p.Labels))
		}
		slices.Sort(got)
		if strings.Join(got, "") != want {
			t.Errorf("%s: got %s, want %s", ip, got, want)
		}
	}
}
