package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// api answers with one object of each kind, once open is set, and before with 503.
type api struct {
	*httptest.Server
	open atomic.Bool
}

func newAPI(t *testing.T) *api {
	a := new(api)
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

var apiObjects = map[string]string{
	"services": `{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"web","namespace":"shop"},"spec":{"clusterIP":"10.96.0.1","ports":[{"name":"http","protocol":"TCP","port":80}]}}]}`,
	"endpointslices": `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{"resourceVersion":"7"},"items":[]}`,
	"namespaces":     `{"apiVersion":"v1","kind":"NamespaceList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"shop"}}]}`,
	"pods": `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"p","namespace":"shop","labels":{"app":"web"}},"status":{"phase":"Running","podIP":"10.244.0.1"}}]}`,
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.open.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(r.URL.Path, "/")
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "": // it does not know that
		w.WriteHeader(http.StatusUnprocessableEntity)
		w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		w.Write([]byte(apiObjects[path[len(path)-1]]))
	}
}

// started returns the plugin of a block that is set up, with what its start and its end do.
func started(t *testing.T, input string) (k *Kubernetes, onStart, onShut func() error) {
	t.Helper()
	k, err := parseBlock(caddy.NewTestController("dns", input))
	if err != nil {
		t.Fatal(err)
	}
	onStart, onShut, err = k.InitKubeCache(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return k, onStart, onShut
}

func TestStart(t *testing.T) {
	logtest.Capture(t)
	a := newAPI(t)
	a.open.Store(true)
	k, onStart, onShut := started(t, "kubernetes cluster.local {\nendpoint "+a.URL+"\npods verified\n}")
	if k.Ready() {
		t.Error("ready before the start")
	}
	begin := time.Now()
	if err := onStart(); err != nil || !k.Ready() || time.Since(begin) > 4*time.Second {
		t.Errorf("%v, ready %t after %s", err, k.Ready(), time.Since(begin))
	}
	if got := describe(ask(t, k, "web.shop.svc.cluster.local.", dns.TypeA)); got != "NOERROR aa\nweb.shop.svc.cluster.local. 5 A 10.96.0.1" {
		t.Error(got)
	}
	if p := k.APIConn.PodIndex("10.244.0.1"); len(p) != 1 || p[0].Labels != nil {
		t.Errorf("pods without the metadata plugin: %+v", p)
	}
	if v := gathered(t, "coredns_kubernetes_last_event_timestamp_seconds"); v < float64(begin.Unix()) {
		t.Errorf("last event %v", v)
	}
	if err := onShut(); err != nil {
		t.Error(err)
	}
	if err := onShut(); !errors.Is(err, errShutdown) {
		t.Errorf("a second time: %v", err)
	}
	if got := describe(ask(t, k, "web.shop.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "NOERROR") {
		t.Errorf("after the end: %s", got)
	}
}

// TestStartWithMetadata starts in a block that also has the metadata plugin.
func TestStartWithMetadata(t *testing.T) {
	logtest.Capture(t)
	a := newAPI(t)
	a.open.Store(true)
	c := caddy.NewTestController("dns", "kubernetes cluster.local {\nendpoint "+a.URL+"\npods verified\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	config := dnsserver.GetConfig(c)
	config.AddPlugin(func(next plugin.Handler) plugin.Handler { return &metadata.Metadata{Next: next} })
	config.Port, config.Transport, config.Zone = "53", "dns", "."
	if _, err := dnsserver.NewServer("dns://:53", []*dnsserver.Config{config}); err != nil {
		t.Fatal(err)
	}
	k := config.Handler(pluginName).(*Kubernetes)
	for _, f := range dnsserver.Instance(c).OnStartup {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	if p := k.APIConn.PodIndex("10.244.0.1"); len(p) != 1 || p[0].Labels["app"] != "web" {
		t.Errorf("pods with the metadata plugin: %+v", p)
	}
	for _, f := range dnsserver.Instance(c).OnShutdown {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartWaits(t *testing.T) {
	out := logtest.Capture(t)
	a := newAPI(t)
	k, onStart, onShut := started(t, "kubernetes cluster.local {\nendpoint "+a.URL+"\nstartup_timeout 1200ms\n}")
	defer onShut()
	begin := time.Now()
	if err := onStart(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if took < 1200*time.Millisecond || took > 4800*time.Millisecond || k.Ready() {
		t.Errorf("waited for %s, ready %t", took, k.Ready())
	}
	if n := strings.Count(out.String(), "[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server"); n != 2 {
		t.Errorf("said %d times that it waits:\n%s", n, out)
	}
	if !strings.Contains(out.String(), "[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API") {
		t.Errorf("said nothing about the start:\n%s", out)
	}
	if got := describe(ask(t, k, "web.shop.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "SERVFAIL aa") {
		t.Error(got)
	}
	outside := from("192.0.2.1", "web.shop.example.org.")
	outside.Zone = "example.org."
	if _, rcode := k.External(outside, false); rcode != dns.RcodeServerFailure {
		t.Errorf("for those outside: %s", dns.RcodeToString[rcode])
	}
	if _, err := k.Transfer("cluster.local.", 0); !errors.Is(err, errUnsynced) {
		t.Errorf("transfer: %v", err)
	}
	a.open.Store(true)
	for deadline := time.Now().Add(10 * time.Second); !k.Ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never ready")
		}
	}
	if got := describe(ask(t, k, "web.shop.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "NOERROR aa") {
		t.Error(got)
	}
	if _, rcode := k.External(outside, false); rcode != dns.RcodeNameError { // it has no address outside
		t.Errorf("for those outside, then: %s", dns.RcodeToString[rcode])
	}
}

func TestStartEndsWithContext(t *testing.T) {
	logtest.Capture(t)
	a := newAPI(t)
	k, err := parseBlock(caddy.NewTestController("dns", "kubernetes cluster.local {\nendpoint "+a.URL+"\nstartup_timeout 1m\n}"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	onStart, _, err := k.InitKubeCache(ctx)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	done := make(chan struct{})
	go func() { onStart(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("waits on after the end of its context")
	}
}

// gathered returns the value of a metric without labels, -1 if there is none.
func gathered(t *testing.T, name string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

func TestMetrics(t *testing.T) {
	if v := gathered(t, "coredns_kubernetes_watch_gaps_total"); v != 0 {
		t.Errorf("gaps %v", v)
	}
	programmed(false, 3*time.Millisecond)
	programmed(true, 3*time.Millisecond)
	ch := make(chan prometheus.Metric, 4)
	object.DNSProgrammingLatency.Collect(ch)
	if len(ch) != 2 {
		t.Errorf("%d kinds of services", len(ch))
	}
}
