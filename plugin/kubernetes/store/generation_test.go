package store

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	api "k8s.io/api/core/v1"
)

// TestGeneration sees that each change counts, and what is told again does not.
func TestGeneration(t *testing.T) {
	s := New(everything(), nil)
	last := s.Generation()
	for _, step := range []struct {
		what   string
		do     func()
		counts bool
	}{
		{"a namespace comes", func() { s.putNamespace(t, "ns1") }, true},
		{"it is told again", func() { s.putNamespace(t, "ns1") }, false},
		{"a service comes", func() { s.putService(t, clusterIP("web", "192.0.2.1")) }, true},
		{"it is told again", func() { s.putService(t, clusterIP("web", "192.0.2.1")) }, false},
		{"its address changes", func() { s.putService(t, clusterIP("web", "192.0.2.2")) }, true},
		{"a slice comes", func() { s.putSlice(t, newSlice("ns1", "web-a", "web", endpoint("192.0.2.9"))) }, true},
		{"a service goes", func() { s.Delete(decode(t, new(lean.Service), clusterIP("web", ""))) }, true},
		{"a namespace goes", func() { s.Delete(decode(t, new(lean.Namespace), &api.Namespace{ObjectMeta: named("", "ns1")})) }, true},
	} {
		step.do()
		if now := s.Generation(); (now > last) != step.counts {
			t.Errorf("%s: generation %d after %d", step.what, now, last)
		} else {
			last = now
		}
	}
}

func TestAddrs(t *testing.T) {
	s := New(everything(), nil)
	s.putService(t, clusterIP("web", "192.0.2.1"))
	s.putSlice(t, newSlice("ns2", "web-a", "web", endpoint("192.0.2.9"), endpoint("2001:db8::9")))
	s.putSlice(t, newSlice("ns2", "orphan", "", endpoint("192.0.2.10")))
	s.putService(t, &api.Service{ObjectMeta: named("ns3", "far"), Spec: api.ServiceSpec{ClusterIP: "None", ExternalIPs: []string{"192.0.2.80"}}})
	for use, want := range [][]string{
		Inside:  {"ns1 192.0.2.1", "ns2 192.0.2.9", "ns2 2001:db8::9"},
		Named:   {"ns1 192.0.2.1"},
		Outside: {"ns3 192.0.2.80"},
	} {
		var got []string
		s.Addrs(Use(use), func(ns string, a netip.Addr) { got = append(got, ns+" "+a.String()) })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("use %d: got %q, want %q", use, got, want)
		}
	}
}

func TestKeepPodLabels(t *testing.T) {
	config := everything()
	config.PodLabels = false
	s := New(config, nil)
	s.KeepPodLabels()
	p := pod("ns1", "web", "192.0.2.9")
	p.Labels = map[string]string{"app": "web"}
	s.putPod(t, p)
	if got := s.PodAt(addr("192.0.2.9")); got == nil || !slices.Equal(got.Labels(), []Label{{"app", "web"}}) {
		t.Errorf("got %+v", got)
	}
}
