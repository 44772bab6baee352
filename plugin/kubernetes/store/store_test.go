package store

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](v T) *T { return &v }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

type marshaler interface{ Marshal() ([]byte, error) }

// decode reads a typed object into o, as the API would have sent it.
func decode[O lean.Object](t testing.TB, o O, obj marshaler) O {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Decode(raw, lean.Protobuf); err != nil {
		t.Fatal(err)
	}
	return o
}

func (s *Store) putService(t testing.TB, svc *api.Service) { s.Put(decode(t, new(lean.Service), svc)) }

func (s *Store) putSlice(t testing.TB, sl *discovery.EndpointSlice) {
	s.Put(decode(t, new(lean.EndpointSlice), sl))
}

func (s *Store) putPod(t testing.TB, p *api.Pod) { s.Put(decode(t, new(lean.Pod), p)) }

func (s *Store) putNamespace(t testing.TB, name string) {
	s.Put(decode(t, new(lean.Namespace), &api.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

func named(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func newSlice(ns, name, service string, ends ...discovery.Endpoint) *discovery.EndpointSlice {
	m := named(ns, name)
	m.Labels = map[string]string{lean.LabelService: service}
	return &discovery.EndpointSlice{ObjectMeta: m, Endpoints: ends,
		Ports: []discovery.EndpointPort{{Name: ptr("http"), Protocol: ptr(api.ProtocolTCP), Port: ptr(int32(8080))}}}
}

func endpoint(addr string) discovery.Endpoint { return discovery.Endpoint{Addresses: []string{addr}} }

func everything() Config {
	return Config{Endpoints: true, Pods: true, Multicluster: true, PodNames: true, Nodes: true, Zones: true, PodLabels: true}
}

// endpoints writes down what a walk over slices finds.
func endpoints(next func() *Slice) string {
	var all []string
	for s := next(); s != nil; s = next() {
		for i := range s.Len() {
			e := s.Endpoint(i)
			if e.Addr != s.Addr(i) {
				return "Addr and Endpoint differ"
			}
			all = append(all, fmt.Sprintf("%s/%s %s h=%s t=%s n=%s z=%s", s.Namespace(), s.Service(), e.Addr, e.Hostname, e.Target, e.Node, e.Zone))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func of(x Slices) func() *Slice { return x.Next }

func ofIP(x SlicesByIP) func() *Slice { return x.Next }

// TestPortsThatAreNone: the API takes any number as a port of a slice. One that is no port has no SRV record.
func TestPortsThatAreNone(t *testing.T) {
	s := New(everything(), nil)
	slice := newSlice("ns1", "web-a", "web", endpoint("192.0.2.1"))
	slice.Ports = nil
	for _, n := range []int32{65535, 65536, 70000, -7} {
		slice.Ports = append(slice.Ports, discovery.EndpointPort{Name: ptr("http"), Protocol: ptr(api.ProtocolTCP), Port: ptr(n)})
	}
	s.putSlice(t, slice)
	all := s.Slices([]byte("ns1"), []byte("web"))
	if got, want := fmt.Sprint(all.Next().Ports()), "[{http tcp 65535} {http tcp -1} {http tcp -1} {http tcp -7}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestServices(t *testing.T) {
	s := New(everything(), nil)
	s.putService(t, &api.Service{ObjectMeta: named("ns1", "web"), Spec: api.ServiceSpec{
		Type: api.ServiceTypeLoadBalancer, ClusterIPs: []string{"192.0.2.1", "2001:db8::1"}, ExternalIPs: []string{"198.51.100.1"},
		Ports: []api.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}},
	}, Status: api.ServiceStatus{LoadBalancer: api.LoadBalancerStatus{Ingress: []api.LoadBalancerIngress{{Hostname: "lb.example.org"}, {IP: "198.51.100.2"}}}}})
	s.putService(t, &api.Service{ObjectMeta: named("ns1", "headless"), Spec: api.ServiceSpec{ClusterIP: "None"}})
	s.putService(t, &api.Service{ObjectMeta: named("ns2", "web"), Spec: api.ServiceSpec{Type: api.ServiceTypeExternalName, ExternalName: "www.example.org"}})

	web := s.Service([]byte("ns1"), []byte("web"))
	if web == nil {
		t.Fatal("no service web")
	}
	got := fmt.Sprint(web.Namespace(), web.Name(), web.ClusterIPs(), web.Headless(), web.Ports(), web.ExternalIPs(), web.ExternalHosts())
	if want := "ns1web[192.0.2.1 2001:db8::1] false [{http tcp 80}] [198.51.100.1 198.51.100.2] [lb.example.org]"; got != want {
		t.Errorf("web:\n%s, want\n%s", got, want)
	}
	if h := s.Service([]byte("ns1"), []byte("headless")); h == nil || !h.Headless() || len(h.ClusterIPs()) != 0 || len(h.Ports()) != 0 {
		t.Errorf("headless: %+v", h)
	}
	ext := s.Service([]byte("ns2"), []byte("web"))
	if name, ok := ext.ExternalName(); !ok || name != "www.example.org" {
		t.Errorf("external name: %q, %v", name, ok)
	}
	if _, ok := web.ExternalName(); ok {
		t.Error("web has an external name")
	}
	for _, ip := range []string{"192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"} {
		if s.ServiceByIP(addr(ip)) != web {
			t.Errorf("%s does not lead to web", ip)
		}
	}
	for _, ip := range []string{"198.51.100.1", "198.51.100.2"} {
		if x := s.ServicesByExternalIP(addr(ip)); x.Next() != web || x.Next() != nil {
			t.Errorf("%s does not lead to web alone", ip)
		}
	}
	if s.ServiceByIP(addr("198.51.100.1")) != nil || s.Service([]byte("ns3"), []byte("web")) != nil {
		t.Error("found what is not there")
	}
	var all []string
	for _, svc := range s.Services() {
		all = append(all, svc.Namespace()+"/"+svc.Name())
	}
	if got := strings.Join(all, " "); got != "ns1/headless ns1/web ns2/web" {
		t.Errorf("all services: %s", got)
	}
}

func TestServiceChanges(t *testing.T) {
	s := New(everything(), nil)
	svc := &api.Service{ObjectMeta: named("ns1", "web"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.1", Ports: []api.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}}}
	s.putService(t, svc)
	before := s.Service([]byte("ns1"), []byte("web"))

	svc.Annotations = map[string]string{"new": "x"}
	s.putService(t, svc)
	if s.Service([]byte("ns1"), []byte("web")) != before {
		t.Error("a change that is none of DNS made a new record")
	}
	svc.Spec.ClusterIP = "192.0.2.2"
	s.putService(t, svc)
	if s.ServiceByIP(addr("192.0.2.1")) != nil || s.ServiceByIP(addr("192.0.2.2")) == nil {
		t.Error("the address did not change")
	}
	if before.ClusterIPs()[0] != addr("192.0.2.1") {
		t.Error("a record changed in the reader's hands")
	}
	s.Delete(decode(t, new(lean.Service), svc))
	if s.Service([]byte("ns1"), []byte("web")) != nil || s.ServiceByIP(addr("192.0.2.2")) != nil {
		t.Error("still there after it was deleted")
	}
	s.Delete(decode(t, new(lean.Service), svc)) // once more does no harm
}

// TestNoNames has services, load balancers and endpoints with names that no record can have.
func TestNoNames(t *testing.T) {
	s := New(everything(), nil)
	long := strings.Repeat("x", 64)
	for i, meta := range []metav1.ObjectMeta{named("ns1", ""), named("", "web"), named("ns1", long), named(long, "web")} {
		ip := fmt.Sprintf("192.0.2.%d", i)
		s.putService(t, &api.Service{ObjectMeta: meta, Spec: api.ServiceSpec{ClusterIP: ip}})
		if s.ServiceByIP(addr(ip)) != nil {
			t.Errorf("%q/%q is a service", meta.Namespace, meta.Name)
		}
	}
	s.putService(t, &api.Service{ObjectMeta: named("ns1", "web"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.9"},
		Status: api.ServiceStatus{LoadBalancer: api.LoadBalancerStatus{Ingress: []api.LoadBalancerIngress{{Hostname: "bad..host"}, {Hostname: long + ".org"}, {Hostname: "lb.example.org"}}}}})
	if got := fmt.Sprint(s.ServiceByIP(addr("192.0.2.9")).ExternalHosts()); got != "[lb.example.org]" {
		t.Errorf("names of the load balancer: %s", got)
	}
	end := endpoint("192.0.2.1")
	end.Hostname = ptr(long)
	s.putSlice(t, newSlice("ns1", "web-a", "web", end))
	if got := endpoints(of(s.Slices([]byte("ns1"), []byte("web")))); got != "ns1/web 192.0.2.1 h= t= n= z=" {
		t.Errorf("endpoints: %s", got)
	}
}

func TestEndpoints(t *testing.T) {
	s := New(everything(), nil)
	full := discovery.Endpoint{Addresses: []string{"192.0.2.1"}, Hostname: ptr("h1"), NodeName: ptr("n1"), Zone: ptr("Zone-A"), TargetRef: &api.ObjectReference{Name: "web-1"}}
	long := endpoint("192.0.2.2")
	long.TargetRef = &api.ObjectReference{Name: strings.Repeat("x", 64)}
	unready := endpoint("192.0.2.3")
	unready.Conditions.Ready = ptr(false)
	s.putSlice(t, newSlice("ns1", "web-a", "web", full, long, unready))
	s.putSlice(t, newSlice("ns1", "web-b", "web", endpoint("2001:db8::1"), endpoint("192.0.2.1")))
	s.putSlice(t, newSlice("ns2", "web-a", "web", endpoint("192.0.2.1")))

	want := `ns1/web 192.0.2.1 h= t= n= z=
ns1/web 192.0.2.1 h=h1 t=web-1 n=n1 z=zone-a
ns1/web 192.0.2.2 h= t= n= z=
ns1/web 2001:db8::1 h= t= n= z=`
	if got := endpoints(of(s.Slices([]byte("ns1"), []byte("web")))); got != want {
		t.Errorf("endpoints:\n%s\nwant\n%s", got, want)
	}
	n := 0
	x := s.SlicesByIP(addr("192.0.2.1"))
	for sl := x.Next(); sl != nil; sl = x.Next() {
		if n++; sl.Find(addr("192.0.2.1"), 0) < 0 {
			t.Error("a slice without the address")
		}
		if fmt.Sprint(sl.Ports()) != "[{http tcp 8080}]" {
			t.Errorf("ports %v", sl.Ports())
		}
	}
	if n != 3 {
		t.Errorf("%d slices by address, want 3", n)
	}
	// A slice that moves to another service leaves the first.
	s.putSlice(t, newSlice("ns1", "web-b", "api", endpoint("192.0.2.9")))
	if got := endpoints(of(s.Slices([]byte("ns1"), []byte("api")))); got != "ns1/api 192.0.2.9 h= t= n= z=" {
		t.Errorf("moved: %s", got)
	}
	if got := endpoints(ofIP(s.SlicesByIP(addr("2001:db8::1")))); got != "" {
		t.Errorf("still at the old address: %s", got)
	}
}

// TestNamesOfPods: the API takes any text for what an endpoint points at, but only a label can be part of a name, and
// names are looked up in lower case.
func TestNamesOfPods(t *testing.T) {
	s := New(everything(), nil)
	for text, want := range map[string]string{
		"web-1": "web-1", "Web-1": "web-1", "10-0-0-1": "10-0-0-1", "a.b": "", "a b": "", `a\b`: "", "*": "", "ünï": "", "_a": "",
		strings.Repeat("x", 63): strings.Repeat("x", 63), strings.Repeat("x", 64): "",
	} {
		e := endpoint("192.0.2.1")
		e.TargetRef = &api.ObjectReference{Kind: "Pod", Name: text}
		s.putSlice(t, newSlice("ns1", "web-a", "web", e))
		if got := endpoints(of(s.Slices([]byte("ns1"), []byte("web")))); got != "ns1/web 192.0.2.1 h= t="+want+" n= z=" {
			t.Errorf("%q: %s", text, got)
		}
	}
	sl := newSlice("ns1", "far", "", endpoint("192.0.2.1"))
	sl.Labels = map[string]string{lean.LabelMCService: "db", lean.LabelMCCluster: "East-1"}
	s.putSlice(t, sl)
	all := s.ImportSlices([]byte("ns1"), []byte("db"))
	if _, cluster := all.Next().Import(); cluster != "east-1" {
		t.Errorf("cluster %q", cluster)
	}
}

// TestKeep sees that what is not asked for is not kept.
func TestKeep(t *testing.T) {
	s := New(Config{Endpoints: true, Pods: true}, nil)
	e := discovery.Endpoint{Addresses: []string{"192.0.2.1"}, Hostname: ptr("h1"), NodeName: ptr("n1"), Zone: ptr("z"), TargetRef: &api.ObjectReference{Name: "web-1"}}
	s.putSlice(t, newSlice("ns1", "web-a", "web", e))
	if got := endpoints(of(s.Slices([]byte("ns1"), []byte("web")))); got != "ns1/web 192.0.2.1 h=h1 t= n= z=" {
		t.Errorf("kept: %s", got)
	}
	s.putPod(t, pod("ns1", "p1", "192.0.2.1"))
	if p := s.PodAt(addr("192.0.2.1")); p == nil || p.Labels() != nil {
		t.Errorf("kept: %+v", p)
	}
}

func pod(ns, name string, ips ...string) *api.Pod {
	p := &api.Pod{ObjectMeta: named(ns, name), Status: api.PodStatus{Phase: api.PodRunning}}
	p.Labels = map[string]string{"app": "web"}
	for _, ip := range ips {
		p.Status.PodIPs = append(p.Status.PodIPs, api.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		p.Status.PodIP = ips[0]
	}
	return p
}

func TestPods(t *testing.T) {
	s := New(everything(), nil)
	s.putPod(t, pod("ns1", "p1", "192.0.2.1", "2001:db8::1"))
	s.putPod(t, pod("ns1", "agent-1", "192.0.2.9"))
	s.putPod(t, pod("ns2", "agent-2", "192.0.2.9"))
	for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
		p := s.PodAt(addr(ip))
		if p == nil || p.Name() != "p1" || p.Namespace() != "ns1" || fmt.Sprint(p.Labels()) != "[{app web}]" {
			t.Errorf("pod at %s: %+v", ip, p)
		}
		if !s.HasPod([]byte("ns1"), addr(ip)) || s.HasPod([]byte("ns2"), addr(ip)) {
			t.Errorf("the namespace of the pod at %s", ip)
		}
	}
	if s.PodAt(addr("192.0.2.9")) != nil {
		t.Error("an address of two pods was given to one")
	}
	if !s.HasPod([]byte("ns1"), addr("192.0.2.9")) || !s.HasPod([]byte("ns2"), addr("192.0.2.9")) {
		t.Error("an address of two pods is in neither namespace")
	}
	// One that is going keeps its address until it is gone; a new one that is going is not taken in.
	going := pod("ns1", "p1", "192.0.2.5")
	going.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	s.putPod(t, going)
	if s.PodAt(addr("192.0.2.1")) == nil || s.PodAt(addr("192.0.2.5")) != nil {
		t.Error("a pod that is going was changed")
	}
	late := pod("ns1", "late", "192.0.2.6")
	late.DeletionTimestamp = going.DeletionTimestamp
	if s.putPod(t, late); s.PodAt(addr("192.0.2.6")) != nil {
		t.Error("a pod that is going was taken in")
	}
	s.pods.begin() // all is read again
	s.putPod(t, going)
	s.putPod(t, pod("ns1", "agent-1", "192.0.2.9"))
	s.putPod(t, pod("ns2", "agent-2", "192.0.2.9"))
	if gone := s.pods.sweep(); gone != 0 || s.PodAt(addr("192.0.2.1")) == nil {
		t.Error("a pod that is going went when all was read again")
	}
	finished := pod("ns2", "agent-2", "192.0.2.9")
	finished.Status.Phase = api.PodSucceeded
	if s.putPod(t, finished); s.PodAt(addr("192.0.2.9")) == nil {
		t.Error("a finished pod holds its address")
	}
	s.Delete(decode(t, new(lean.Pod), going))
	if s.PodAt(addr("192.0.2.1")) != nil {
		t.Error("a pod that is gone holds its address")
	}
}

func TestExposed(t *testing.T) {
	for _, tc := range []struct {
		list []string
		want string
	}{{nil, "ns1 ns2"}, {[]string{"ns2", "ns3"}, "ns2"}, {[]string{}, ""}} {
		s := New(Config{Namespaces: tc.list}, nil)
		s.putNamespace(t, "ns1")
		s.putNamespace(t, "ns2")
		var got []string
		for _, ns := range []string{"ns1", "ns2", "ns3"} {
			if s.Exposed([]byte(ns)) {
				got = append(got, ns)
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("with %q exposed are %q, want %q", tc.list, got, tc.want)
		}
		s.Delete(decode(t, new(lean.Namespace), &api.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns2"}}))
		if s.Exposed([]byte("ns2")) {
			t.Error("exposed though gone")
		}
	}
}

func TestMulticluster(t *testing.T) {
	s := New(everything(), nil)
	put := func(text string) {
		t.Helper()
		o := new(lean.ServiceImport)
		if err := o.Decode([]byte(text), lean.JSON); err != nil {
			t.Fatal(err)
		}
		s.Put(o)
	}
	put(`{"metadata":{"name":"db","namespace":"ns1"},"spec":{"type":"ClusterSetIP","ips":["192.0.2.1"],"ports":[{"name":"sql","protocol":"TCP","port":5432}]}}`)
	first := s.Serial(Multicluster)
	if first == 0 || s.Serial(Internal) != 0 || s.Serial(External) != 0 {
		t.Errorf("serials %d, %d, %d", first, s.Serial(Internal), s.Serial(External))
	}
	svc := s.ServiceImport([]byte("ns1"), []byte("db"))
	if svc == nil || fmt.Sprint(svc.ClusterIPs(), svc.Ports(), svc.Headless()) != "[192.0.2.1] [{sql tcp 5432}] false" {
		t.Errorf("import: %+v", svc)
	}
	if s.Service([]byte("ns1"), []byte("db")) != nil {
		t.Error("an import is among the services")
	}
	sl := newSlice("ns1", "imported", "", endpoint("192.0.2.7"))
	sl.Labels = map[string]string{lean.LabelMCService: "db", lean.LabelMCCluster: "east"}
	s.putSlice(t, sl)
	x := s.ImportSlices([]byte("ns1"), []byte("db"))
	got := x.Next()
	if got == nil || x.Next() != nil {
		t.Fatal("not one slice of the import")
	}
	if name, cluster := got.Import(); name != "db" || cluster != "east" || got.Service() != "" {
		t.Errorf("import %q of %q, service %q", name, cluster, got.Service())
	}
	if y := s.Slices([]byte("ns1"), []byte("db")); y.Next() != nil {
		t.Error("an imported slice is among the cluster's own")
	}
	if s.Serial(Multicluster) <= first {
		t.Error("the serial did not rise")
	}
}

// TestSerials sees which changes concern which zones.
func TestSerials(t *testing.T) {
	s := New(everything(), nil)
	svc := &api.Service{ObjectMeta: named("ns1", "web"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.1", Ports: []api.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}}}}
	ends := newSlice("ns1", "web-a", "web", endpoint("192.0.2.1"))
	p := pod("ns1", "p1", "192.0.2.1")
	for _, step := range []struct {
		what               string
		do                 func()
		internal, external bool
	}{
		{"service added", func() { s.putService(t, svc) }, true, false},
		{"nothing changed", func() { s.putService(t, svc) }, false, false},
		{"annotation", func() { svc.Annotations = map[string]string{"a": "b"}; s.putService(t, svc) }, false, false},
		{"external address", func() { svc.Spec.ExternalIPs = []string{"198.51.100.1"}; s.putService(t, svc) }, false, true},
		{"port", func() { svc.Spec.Ports[0].Port = 81; s.putService(t, svc) }, true, true},
		{"service deleted", func() { s.Delete(decode(t, new(lean.Service), svc)) }, true, true},
		{"service with external address added", func() { s.putService(t, svc) }, true, true},
		{"slice added", func() { s.putSlice(t, ends) }, true, false},
		{"slice unchanged", func() { s.putSlice(t, ends) }, false, false},
		{"endpoint", func() { ends.Endpoints = append(ends.Endpoints, endpoint("192.0.2.2")); s.putSlice(t, ends) }, true, false},
		{"slice deleted", func() { s.Delete(decode(t, new(lean.EndpointSlice), ends)) }, true, false},
		{"pod added", func() { s.putPod(t, p) }, true, false},
		{"pod's label", func() { p.Labels["x"] = "y"; s.putPod(t, p) }, false, false},
		{"pod's address", func() { s.putPod(t, pod("ns1", "p1", "192.0.2.3")) }, true, false},
		{"namespace", func() { s.putNamespace(t, "ns1") }, false, false},
	} {
		i, e := s.Serial(Internal), s.Serial(External)
		step.do()
		if got := s.Serial(Internal) > i; got != step.internal {
			t.Errorf("%s: internal serial rose: %v", step.what, got)
		}
		if got := s.Serial(External) > e; got != step.external {
			t.Errorf("%s: external serial rose: %v", step.what, got)
		}
	}
}

// TestSerialsOutside sees that changes of endpoints concern external zones where these are published.
func TestSerialsOutside(t *testing.T) {
	for _, outside := range []bool{false, true} {
		s := New(everything(), nil)
		if outside {
			s.PublishEndpoints()
		}
		s.putSlice(t, newSlice("ns1", "web-a", "web", endpoint("192.0.2.1")))
		if got := s.Serial(External) != 0; got != outside {
			t.Errorf("published %v: the external serial rose: %v", outside, got)
		}
	}
}

// TestSerialsOfNamespaces sees that a namespace which begins or ends to pass the selector concerns the zones in which it has
// services.
func TestSerialsOfNamespaces(t *testing.T) {
	s := New(everything(), nil)
	reached := &api.Service{ObjectMeta: named("reached", "web"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.1", ExternalIPs: []string{"198.51.100.1"}}}
	s.putService(t, &api.Service{ObjectMeta: named("plain", "web"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.2"}})
	s.putService(t, reached)
	s.Put(&lean.ServiceImport{Meta: lean.Meta{Name: []byte("db"), Namespace: []byte("imported")}})
	s.PutDone()
	for _, step := range []struct{ namespace, want string }{
		{"plain", "[true false false]"}, {"reached", "[true true false]"}, {"imported", "[false false true]"}, {"empty", "[false false false]"},
	} {
		for what, do := range map[string]func(){
			"comes": func() { s.putNamespace(t, step.namespace) },
			"goes":  func() { s.Delete(&lean.Namespace{Meta: lean.Meta{Name: []byte(step.namespace)}}) },
		} {
			if what == "goes" {
				s.putNamespace(t, step.namespace)
			} else {
				s.Delete(&lean.Namespace{Meta: lean.Meta{Name: []byte(step.namespace)}})
			}
			var before, rose [3]uint32
			for z := range before {
				before[z] = s.Serial(Zone(z))
			}
			do()
			got := make([]bool, len(rose))
			for z := range rose {
				got[z] = s.Serial(Zone(z)) > before[z]
			}
			if fmt.Sprint(got) != step.want {
				t.Errorf("%s %s: serials rose: %v, want %s", step.namespace, what, got, step.want)
			}
		}
	}
}

// TestPutDone fills a store without an API.
func TestPutDone(t *testing.T) {
	s := New(everything(), nil)
	s.putNamespace(t, "ns1")
	if s.HasSynced() {
		t.Error("synced before it was filled")
	}
	s.PutDone()
	s.PutDone()
	awaitSync(t, s)
}
