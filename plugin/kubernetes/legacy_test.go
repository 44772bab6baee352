package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// setUp is a configuration that has started, and the plugin in it.
type setUp struct {
	*Kubernetes
	instance *caddy.Instance
}

func call(t *testing.T, all []func() error) {
	t.Helper()
	for _, f := range all {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
}

func configure(t *testing.T, stanza string) setUp {
	t.Helper()
	c := caddy.NewTestController("dns", stanza)
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	config := dnsserver.GetConfig(c)
	config.Port, config.Transport, config.Zone = "53", "dns", "."
	if _, err := dnsserver.NewServer("dns://:53", []*dnsserver.Config{config}); err != nil {
		t.Fatal(err)
	}
	i := dnsserver.Instance(c)
	call(t, i.OnStartup)
	return setUp{config.Handler(pluginName).(*Kubernetes), i}
}

// replace is a reload.
func (c setUp) replace(t *testing.T, stanza string) setUp {
	t.Helper()
	call(t, c.instance.OnRestart)
	next := configure(t, stanza)
	call(t, c.instance.OnShutdown)
	return next
}

func TestReloadWithoutAPI(t *testing.T) {
	out := logtest.Capture(t)
	a := newAPI(t)
	a.open.Store(true)
	stanza := func(more string) string {
		return "kubernetes cluster.local {\nendpoint " + a.URL + "\nstartup_timeout 20ms\npods verified\n" + more + "}"
	}
	const synced = 10 * time.Second
	web := func(k setUp) string {
		got, _, _ := strings.Cut(describe(ask(t, k.Kubernetes, "web.shop.svc.cluster.local.", dns.TypeA)), " ")
		return got
	}
	awaitReady := func(k setUp) {
		for deadline := time.Now().Add(synced); !k.APIConn.(*controller).Store.HasSynced(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("never synced")
			}
		}
	}
	k := configure(t, stanza(""))
	awaitReady(k)
	serial := k.APIConn.Modified(ModifiedInternal)
	a.open.Store(false)
	for range 3 { // one reload after the other
		k = k.replace(t, stanza("ttl 30\n"))
		if got := web(k); got != "NOERROR" || !k.Ready() {
			t.Fatalf("without the API: %s, ready %t\n%s", got, k.Ready(), out)
		}
	}
	if got := describe(ask(t, k.Kubernetes, "none.shop.svc.cluster.local.", dns.TypeA)); !strings.HasPrefix(got, "NXDOMAIN") {
		t.Errorf("what there was not: %s", got)
	}
	if now := k.APIConn.Modified(ModifiedInternal); now != serial || len(k.APIConn.PodIndex("10.244.0.1")) != 1 {
		t.Errorf("serial %d, was %d; pods %v", now, serial, k.APIConn.PodIndex("10.244.0.1"))
	}
	if len(offers.all) != 0 {
		t.Errorf("%d offers are left", len(offers.all))
	}

	other := k.replace(t, stanza("labels app=web\n"))
	if got := web(other); got != "SERVFAIL" || other.Ready() {
		t.Errorf("with other objects: %s, ready %t", got, other.Ready())
	}
	call(t, k.instance.OnRestart)
	call(t, k.instance.OnRestartFailed)
	call(t, other.instance.OnShutdown)
	if len(offers.all) != 0 {
		t.Errorf("%d offers are left by a reload that failed", len(offers.all))
	}
}

// TestSerialsOutliveReloads has more changes than seconds, so that the serials are ahead of the clock, and then reloads
// other options: a secondary must not be told of an older zone.
func TestSerialsOutliveReloads(t *testing.T) {
	logtest.Capture(t)
	a := newAPI(t)
	a.open.Store(true)
	stanza := "kubernetes cluster.local {\nendpoint " + a.URL + "\nstartup_timeout 10s\n"
	modes := []ModifiedMode{ModifiedInternal, ModifiedExternal}
	k := configure(t, stanza+"}")
	for n := range 10 {
		put(t, storeOf(k.Kubernetes), fmt.Sprintf("kind: Service\nmetadata: {name: s%d, namespace: shop}\nspec: {clusterIP: 10.96.1.%d, externalIPs: [192.0.2.1]}", n, n))
		for _, mode := range modes {
			k.APIConn.Modified(mode)
		}
	}
	for _, option := range []string{"labels app=web\n}", "ttl 30\n}", "}"} {
		before := map[ModifiedMode]int64{}
		for _, mode := range modes {
			before[mode] = k.APIConn.Modified(mode)
		}
		k = k.replace(t, stanza+option)
		if now := k.APIConn.Modified(ModifiedInternal); now <= before[ModifiedInternal] {
			t.Errorf("with %q the serial is %d after %d", option, now, before[ModifiedInternal])
		}
		if now := k.APIConn.Modified(ModifiedExternal); now < before[ModifiedExternal] {
			t.Errorf("with %q the external serial is %d after %d", option, now, before[ModifiedExternal])
		}
	}
	call(t, k.instance.OnRestart)
	other := configure(t, strings.Replace(stanza, "cluster.local", "other.local", 1)+"}")
	if now := other.APIConn.Modified(ModifiedInternal); now > time.Now().Unix() {
		t.Errorf("another zone begins with %d", now)
	}
	call(t, k.instance.OnShutdown)
	call(t, other.instance.OnShutdown)
}

// What was inherited is let go of when the API is back.
func TestLegacyIsLetGo(t *testing.T) {
	logtest.Capture(t)
	a := newAPI(t)
	a.open.Store(true)
	stanza := "kubernetes cluster.local {\nendpoint " + a.URL + "\nstartup_timeout 10s\n}"
	k := configure(t, stanza)
	a.open.Store(false)
	k = k.replace(t, strings.Replace(stanza, "10s", "20ms", 1))
	conn := k.APIConn.(*controller)
	if conn.legacy.Load() == nil || !k.Ready() {
		t.Fatal("nothing inherited")
	}
	a.open.Store(true)
	for deadline := time.Now().Add(10 * time.Second); conn.legacy.Load() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("kept for ever")
		}
	}
	if s, complete := k.data(); s != conn.Store || !complete {
		t.Error("does not answer from what it has read")
	}
	call(t, k.instance.OnShutdown)
}

func TestKin(t *testing.T) {
	of := store.Config{Namespaces: []string{"a", "b"}, Endpoints: true, Log: logger, Latency: programmed}
	same := store.Config{Namespaces: []string{"a", "b"}, Endpoints: true}
	if kin("http://x", of) != kin("http://x", same) {
		t.Error("log and latency decide")
	}
	for _, c := range []store.Config{{Namespaces: []string{"a b"}, Endpoints: true}, {Namespaces: []string{"a", "b"}}, {Endpoints: true}} {
		if kin("http://x", of) == kin("http://x", c) {
			t.Errorf("%+v is kin", c)
		}
	}
	if kin("http://x", of) == kin("http://y", of) {
		t.Error("another API is kin")
	}
}
