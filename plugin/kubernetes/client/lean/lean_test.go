package lean_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
	"github.com/coredns/coredns/plugin/kubernetes/object"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](v T) *T { return &v }

var created = metav1.NewTime(time.Unix(1700000000, 0))

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "ns1", UID: "0f0e", ResourceVersion: "42", CreationTimestamp: created,
		Labels:        map[string]string{"app": "x", lean.LabelService: "web", lean.LabelMCService: "far", lean.LabelMCCluster: "c1"},
		Annotations:   map[string]string{lean.AnnotationTrigger: "2026-01-02T03:04:05Z", "empty": ""},
		Finalizers:    []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:x":{}}`)}}},
	}
}

var services = []*api.Service{
	{},
	{ObjectMeta: meta("web"), Spec: api.ServiceSpec{
		Type: api.ServiceTypeLoadBalancer, ClusterIP: "192.0.2.1", ClusterIPs: []string{"192.0.2.1", "2001:db8::1"},
		ExternalIPs: []string{"192.0.2.10", "not an address"}, Selector: map[string]string{"a": "b"},
		Ports: []api.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30000}, {Name: "dns", Protocol: "UDP", Port: 53, AppProtocol: ptr("x")}},
	}, Status: api.ServiceStatus{LoadBalancer: api.LoadBalancerStatus{Ingress: []api.LoadBalancerIngress{
		{IP: "192.0.2.11"}, {Hostname: "lb.example.org"}, {IP: "2001:db8::11", Hostname: "both.example.org"}, {}}}}},
	{ObjectMeta: meta("one"), Spec: api.ServiceSpec{ClusterIP: "192.0.2.2"}},
	{ObjectMeta: meta("headless"), Spec: api.ServiceSpec{ClusterIP: "None"}},
	{ObjectMeta: meta("headless2"), Spec: api.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}},
	{ObjectMeta: meta("ext"), Spec: api.ServiceSpec{Type: api.ServiceTypeExternalName, ExternalName: "www.example.org"}},
}

var endpointSlices = []*discovery.EndpointSlice{
	{},
	{ObjectMeta: meta("web-4"), AddressType: discovery.AddressTypeIPv4,
		Ports: []discovery.EndpointPort{{Name: ptr("http"), Protocol: ptr(api.ProtocolTCP), Port: ptr(int32(8080))}, {}},
		Endpoints: []discovery.Endpoint{
			{Addresses: []string{"192.0.2.1", "192.0.2.2"}, Hostname: ptr("h1"), NodeName: ptr("n1"), Zone: ptr("Zone-A"),
				Conditions: discovery.EndpointConditions{Ready: ptr(true), Terminating: ptr(false)},
				TargetRef:  &api.ObjectReference{Kind: "Pod", Namespace: "ns1", Name: "web-1", UID: "u"}},
			{Addresses: []string{"192.0.2.3"}, Conditions: discovery.EndpointConditions{Ready: ptr(false), Serving: ptr(true)}},
			{Addresses: []string{"192.0.2.4"}, TargetRef: &api.ObjectReference{Name: strings.Repeat("x", 64)}},
			{},
		}},
	{ObjectMeta: meta("web-6"), AddressType: discovery.AddressTypeIPv6,
		Endpoints: []discovery.Endpoint{{Addresses: []string{"2001:db8::1"}, Zone: ptr("")}, {Addresses: []string{"::ffff:192.0.2.9"}}}},
}

var pods = []*api.Pod{
	{},
	{ObjectMeta: meta("p1"), Spec: api.PodSpec{NodeName: "n"}, Status: api.PodStatus{Phase: api.PodRunning, HostIP: "192.0.2.99", PodIP: "192.0.2.1", PodIPs: []api.PodIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}}},
	{ObjectMeta: meta("p2"), Status: api.PodStatus{Phase: api.PodSucceeded, PodIP: "192.0.2.2"}},
	{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &created}, Status: api.PodStatus{PodIP: "2001:db8::2"}},
}

// typed is what all objects of k8s.io/api offer here.
type typed interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// both decodes obj from protobuf and from JSON into fresh values of T and sees that they agree.
func both[T any, P interface {
	*T
	lean.Object
}](t *testing.T, obj typed) P {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var p, j P = new(T), new(T)
	// What the value held before must not show: first some other object goes in.
	p.Decode([]byte("\x0a\x07\x0a\x05other"), lean.Protobuf)
	if err := p.Decode(raw, lean.Protobuf); err != nil {
		t.Fatalf("protobuf: %v", err)
	}
	if err := j.Decode(text, lean.JSON); err != nil {
		t.Fatalf("JSON: %v", err)
	}
	if a, b := fmt.Sprintf("%q", view(p)), fmt.Sprintf("%q", view(j)); a != b {
		t.Errorf("protobuf and JSON differ:\n%s\n%s", a, b)
	}
	checkMeta(t, p.Metadata(), obj)
	return p
}

// view leaves the unexported fields out.
func view(v any) []any {
	var out []any
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		if f := s.Type().Field(i); f.IsExported() {
			out = append(out, f.Name, fmt.Sprintf("%q", s.Field(i).Interface()))
		}
	}
	return out
}

func checkMeta(t *testing.T, m *lean.Meta, obj metav1.Object) {
	t.Helper()
	if string(m.Name) != obj.GetName() || string(m.Namespace) != obj.GetNamespace() || string(m.ResourceVersion) != obj.GetResourceVersion() {
		t.Errorf("metadata %s/%s version %s, want %v", m.Namespace, m.Name, m.ResourceVersion, obj)
	}
	if m.Deleting != (obj.GetDeletionTimestamp() != nil) {
		t.Errorf("deleting %v", m.Deleting)
	}
	if len(m.Labels) != len(obj.GetLabels()) || len(m.Annotations) != len(obj.GetAnnotations()) {
		t.Errorf("labels %q, annotations %q, want %v, %v", m.Labels, m.Annotations, obj.GetLabels(), obj.GetAnnotations())
	}
	for k, v := range obj.GetLabels() {
		if string(m.Label(k)) != v {
			t.Errorf("label %s is %q, want %q", k, m.Label(k), v)
		}
	}
	for k, v := range obj.GetAnnotations() {
		if string(m.Annotation(k)) != v {
			t.Errorf("annotation %s is %q, want %q", k, m.Annotation(k), v)
		}
	}
}

// addrs returns those of the strings that are addresses, and the others that are not empty.
func addrs(ss []string) (out []netip.Addr, other []string) {
	for _, s := range ss {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a.Unmap().WithZone(""))
		} else if s != "" {
			other = append(other, s)
		}
	}
	return out, other
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

// checkService compares with the typed object's conversion.
func checkService(t *testing.T, svc *api.Service) {
	got := both[lean.Service](t, svc)
	obj, err := object.ToService(svc.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	want := obj.(*object.Service)
	ips, _ := addrs(want.ClusterIPs)
	equal(t, "cluster IPs", got.ClusterIPs, ips)
	equal(t, "headless", got.Headless, want.Headless())
	equal(t, "type", string(got.Type), want.Type)
	equal(t, "external name", string(got.ExternalName), want.ExternalName)
	if len(want.Ports) == 1 && want.Ports[0].Port == -1 && len(svc.Spec.Ports) == 0 {
		want.Ports = nil
	}
	equal(t, "number of ports", len(got.Ports), len(want.Ports))
	for i, p := range want.Ports {
		equal(t, "port", got.Ports[i], lean.Port{Name: []byte(p.Name), Protocol: []byte(p.Protocol), Number: p.Port})
	}
	// Hosts of load balancers that look like addresses are hosts all the same.
	var ext []string
	ext = append(ext, svc.Spec.ExternalIPs...)
	var hosts []string
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			ext = append(ext, in.IP)
		} else if in.Hostname != "" {
			hosts = append(hosts, in.Hostname)
		}
	}
	extIPs, _ := addrs(ext)
	equal(t, "external IPs", got.ExternalIPs, extIPs)
	equal(t, "external hosts", fmt.Sprintf("%s", got.ExternalHosts), fmt.Sprintf("%s", hosts))
	equal(t, "all external", len(want.ExternalIPs), len(ext)+len(hosts))
}

func checkSlice(t *testing.T, slice *discovery.EndpointSlice) {
	got := both[lean.EndpointSlice](t, slice)
	obj, err := object.EndpointSliceToEndpointsWithZones(slice.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	want := obj.(*object.Endpoints)
	var all []string
	for _, e := range got.Endpoints {
		target := string(e.Target)
		if len(target) > 63 {
			target = ""
		}
		all = append(all, fmt.Sprintf("%s %s %s %s", e.Addr, e.Hostname, e.Node, target))
	}
	var wanted []string
	for _, a := range want.Subsets[0].Addresses {
		if ip, err := netip.ParseAddr(a.IP); err == nil {
			wanted = append(wanted, fmt.Sprintf("%s %s %s %s", ip.Unmap().WithZone(""), a.Hostname, a.NodeName, a.TargetRefName))
		}
	}
	equal(t, "endpoints", all, wanted)
	ports := want.Subsets[0].Ports
	if len(slice.Ports) == 0 {
		ports = nil
	}
	equal(t, "number of ports", len(got.Ports), len(ports))
	for i, p := range ports {
		equal(t, "port", got.Ports[i], lean.Port{Name: []byte(p.Name), Protocol: []byte(p.Protocol), Number: p.Port})
	}
	for _, e := range got.Endpoints {
		if zone := want.Zones[e.Addr.String()]; zone != "" && len(want.IndexIP) == 1 {
			equal(t, "zone", strings.ToLower(string(e.Zone)), zone)
		}
	}
	equal(t, "index", string(got.Meta.Label(lean.LabelService))+"."+string(got.Meta.Namespace), want.Index)
}

func checkPod(t *testing.T, pod *api.Pod) {
	got := both[lean.Pod](t, pod)
	obj, err := object.ToPod(pod.DeepCopy())
	if (err != nil) != (pod.DeletionTimestamp != nil && !pod.DeletionTimestamp.IsZero()) {
		t.Fatal(err)
	}
	want := obj.(*object.Pod)
	for _, s := range append(want.PodIPs, want.PodIP) {
		if a, err := netip.ParseAddr(s); err == nil && !strings.Contains(fmt.Sprint(got.IPs), a.Unmap().WithZone("").String()) {
			t.Errorf("%v lacks %v", got.IPs, a)
		}
	}
	if len(got.IPs) > len(want.PodIPs)+1 {
		t.Errorf("%v has more than %v", got.IPs, want.PodIPs)
	}
	finished := pod.Status.Phase == api.PodSucceeded || pod.Status.Phase == api.PodFailed || pod.Status.Phase == api.PodUnknown
	equal(t, "finished", got.Finished, finished)
}

func TestDecode(t *testing.T) {
	for _, s := range services {
		t.Run("service "+s.Name, func(t *testing.T) { checkService(t, s) })
	}
	for _, s := range endpointSlices {
		t.Run("slice "+s.Name, func(t *testing.T) { checkSlice(t, s) })
	}
	for _, p := range pods {
		t.Run("pod "+p.Name, func(t *testing.T) { checkPod(t, p) })
	}
	t.Run("namespace", func(t *testing.T) { both[lean.Namespace](t, &api.Namespace{ObjectMeta: meta("ns1")}) })
}

func TestServiceImport(t *testing.T) {
	const text = `{"kind":"ServiceImport","metadata":{"name":"db","namespace":"ns1","resourceVersion":"7"},
		"spec":{"type":"ClusterSetIP","ips":["192.0.2.1","2001:db8::1"],"ports":[{"name":"sql","protocol":"TCP","port":5432}]}}`
	var s lean.ServiceImport
	if err := s.Decode([]byte(text), lean.JSON); err != nil {
		t.Fatal(err)
	}
	equal(t, "import", fmt.Sprintf("%s %s %v %v %s %d", s.Meta.Name, s.Meta.Namespace, s.Headless, s.IPs, s.Ports[0].Name, s.Ports[0].Number),
		"db ns1 false [192.0.2.1 2001:db8::1] sql 5432")
	if err := s.Decode([]byte(`{"spec":{"type":"Headless"}}`), lean.JSON); err != nil || !s.Headless || len(s.IPs) != 0 || len(s.Ports) != 0 {
		t.Errorf("headless import: %+v, %v", s, err)
	}
	if err := s.Decode(nil, lean.Protobuf); err == nil {
		t.Error("an import in protobuf was accepted")
	}
}

// TestDecodeAllocates sees that a value that is used again decodes without allocating.
func TestDecodeAllocates(t *testing.T) {
	raw, _ := endpointSlices[1].Marshal()
	var s lean.EndpointSlice
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Decode(raw, lean.Protobuf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a slice", n)
	}
	service := services[1].DeepCopy()
	service.Spec.ExternalIPs = service.Spec.ExternalIPs[:1] // what is no address costs an error
	raw, _ = service.Marshal()
	var svc lean.Service
	if n := testing.AllocsPerRun(100, func() {
		if err := svc.Decode(raw, lean.Protobuf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a service", n)
	}
}

func BenchmarkDecodeSlice(b *testing.B) {
	raw, _ := endpointSlices[1].Marshal()
	var s lean.EndpointSlice
	b.ReportAllocs()
	for b.Loop() {
		s.Decode(raw, lean.Protobuf)
	}
}

// The fuzz targets let the typed object read arbitrary bytes, write what it understood in its own
// words, and compare that with what we read there.

func FuzzService(f *testing.F) {
	for _, s := range services {
		raw, _ := s.Marshal()
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		new(lean.Service).Decode(b, lean.Protobuf) // must not panic, whatever it is
		new(lean.Service).Decode(b, lean.JSON)
		if s := new(api.Service); s.Unmarshal(b) == nil && sane(s) {
			checkService(t, s)
		}
	})
}

func FuzzEndpointSlice(f *testing.F) {
	for _, s := range endpointSlices {
		raw, _ := s.Marshal()
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		new(lean.EndpointSlice).Decode(b, lean.Protobuf)
		new(lean.EndpointSlice).Decode(b, lean.JSON)
		if s := new(discovery.EndpointSlice); s.Unmarshal(b) == nil && sane(s) {
			checkSlice(t, s)
		}
	})
}

func FuzzPod(f *testing.F) {
	for _, p := range pods {
		raw, _ := p.Marshal()
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		new(lean.Pod).Decode(b, lean.Protobuf)
		new(lean.Pod).Decode(b, lean.JSON)
		if p := new(api.Pod); p.Unmarshal(b) == nil && sane(p) {
			checkPod(t, p)
		}
	})
}

// sane leaves out objects that no API server holds and that JSON cannot carry: bytes that
// are no UTF-8, and a deletion at the zero time, which JSON writes as null.
func sane(obj typed) bool {
	text, err := json.Marshal(obj)
	if err != nil || strings.Contains(string(text), `\ufffd`) {
		return false
	}
	t := obj.GetDeletionTimestamp()
	return t == nil || !t.IsZero()
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("k8s\x00\x0a\x0d\x0a\x02v1\x12\x07Service\x12\x02\x0a\x00"))
	f.Add([]byte("\x0a\x05ADDED\x12\x06\x0a\x04k8s\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, object, err := lean.Unwrap(b); err == nil && len(object) > len(b) {
			t.Error("an object larger than its envelope")
		}
		if _, object, err := lean.Event(b); err == nil && len(object) > len(b) {
			t.Error("an object larger than its event")
		}
	})
}
