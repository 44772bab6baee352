package object

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

// trimmed is what all our types are.
type trimmed interface {
	meta.Object
	runtime.Object
}

var _ = []trimmed{&Service{}, &Endpoints{}, &Pod{}, &Namespace{}, &ServiceImport{}, &MultiClusterEndpoints{}}

func newService() *api.Service {
	return &api.Service{
		ObjectMeta: meta.ObjectMeta{Name: "web", Namespace: "ns1", ResourceVersion: "5", Labels: map[string]string{"a": "b"}},
		Spec: api.ServiceSpec{Type: api.ServiceTypeLoadBalancer, ClusterIP: "192.0.2.1", ClusterIPs: []string{"192.0.2.1", "2001:db8::1"},
			ExternalIPs: []string{"198.51.100.1"}, Ports: []api.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: ptr("x")}}},
		Status: api.ServiceStatus{LoadBalancer: api.LoadBalancerStatus{Ingress: []api.LoadBalancerIngress{{IP: "198.51.100.2"}, {Hostname: "lb.example.org"}}}},
	}
}

func newEndpointSlice() *discovery.EndpointSlice {
	return &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{Name: "web-a", Namespace: "ns1", ResourceVersion: "6", Labels: map[string]string{
			discovery.LabelServiceName: "web", mcs.LabelServiceName: "far", mcs.LabelSourceCluster: "east"}},
		Endpoints: []discovery.Endpoint{
			{Addresses: []string{"192.0.2.1", "192.0.2.2"}, Hostname: ptr("h1"), NodeName: ptr("n1"), Zone: ptr("Zone-A"), TargetRef: &api.ObjectReference{Name: "web-1"},
				Conditions: discovery.EndpointConditions{Ready: ptr(true)}},
			{Addresses: []string{"192.0.2.3"}, Conditions: discovery.EndpointConditions{Ready: ptr(false)}},
			{Addresses: []string{"192.0.2.4"}, TargetRef: &api.ObjectReference{Name: strings.Repeat("x", 64)}},
		},
		Ports: []discovery.EndpointPort{{Name: ptr("http"), Port: ptr(int32(80)), Protocol: ptr(api.ProtocolTCP)}, {}},
	}
}

func newPod() *api.Pod {
	return &api.Pod{ObjectMeta: meta.ObjectMeta{Name: "p1", Namespace: "ns1", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Status: api.PodStatus{PodIP: "192.0.2.1", PodIPs: []api.PodIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}}}}
}

// newImportOfAPI is what newImport is, as the API's Go package has it.
func newImportOfAPI() *mcs.ServiceImport {
	return &mcs.ServiceImport{ObjectMeta: meta.ObjectMeta{Name: "db", Namespace: "ns1", ResourceVersion: "8"}, Spec: mcs.ServiceImportSpec{
		Type: mcs.Headless, IPs: []string{"192.0.2.9"}, Ports: []mcs.ServicePort{{Name: "sql", Protocol: api.ProtocolTCP, Port: 5432, AppProtocol: ptr("x")}}}}
}

func newImport() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "ServiceImport", "apiVersion": "multicluster.x-k8s.io/v1alpha1",
		"metadata": map[string]any{"name": "db", "namespace": "ns1", "resourceVersion": "8"},
		"spec":     map[string]any{"type": "Headless", "ips": []any{"192.0.2.9"}, "ports": []any{map[string]any{"name": "sql", "protocol": "TCP", "port": int64(5432), "appProtocol": "x"}}}}}
}

func convert(t *testing.T, f ToFunc, obj meta.Object) trimmed {
	t.Helper()
	out, err := f(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out.(trimmed)
}

func TestConversions(t *testing.T) {
	headless := newService()
	headless.Spec.ClusterIPs, headless.Spec.ClusterIP, headless.Spec.Ports = nil, "None", nil
	bare := newEndpointSlice()
	bare.Endpoints, bare.Ports = nil, nil
	for _, tc := range []struct {
		name string
		f    ToFunc
		obj  meta.Object
		want string
	}{
		{"service", ToService, newService(), `{"Version":"5","Name":"web","Namespace":"ns1","Index":"web.ns1","ClusterIPs":["192.0.2.1","2001:db8::1"],"Type":"LoadBalancer","ExternalName":"","Ports":[{"name":"http","protocol":"TCP","appProtocol":"x","port":80,"targetPort":0}],"ExternalIPs":["198.51.100.1","198.51.100.2","lb.example.org"]}`},
		{"headless without ports", ToService, headless, `{"Version":"5","Name":"web","Namespace":"ns1","Index":"web.ns1","ClusterIPs":["None"],"Type":"LoadBalancer","ExternalName":"","Ports":[{"port":-1,"targetPort":0}],"ExternalIPs":["198.51.100.1","198.51.100.2","lb.example.org"]}`},
		{"slice", EndpointSliceToEndpoints, newEndpointSlice(), `{"Version":"6","Name":"web-a","Namespace":"ns1","Index":"web.ns1","IndexIP":["192.0.2.1","192.0.2.2","192.0.2.4"],"Subsets":[{"Addresses":[{"IP":"192.0.2.1","Hostname":"h1","NodeName":"n1","TargetRefName":"web-1"},{"IP":"192.0.2.2","Hostname":"h1","NodeName":"n1","TargetRefName":"web-1"},{"IP":"192.0.2.4","Hostname":"","NodeName":"","TargetRefName":""}],"Ports":[{"Port":80,"Name":"http","Protocol":"TCP"},{"Port":-1,"Name":"","Protocol":""}]}],"Zones":null}`},
		{"empty slice with zones", EndpointSliceToEndpointsWithZones, bare, `{"Version":"6","Name":"web-a","Namespace":"ns1","Index":"web.ns1","IndexIP":null,"Subsets":[{"Addresses":null,"Ports":[{"Port":-1,"Name":"","Protocol":""}]}],"Zones":null}`},
		{"pod", ToPod, newPod(), `{"Version":"7","PodIP":"192.0.2.1","Name":"p1","Namespace":"ns1","Labels":{"a":"b"},"PodIPs":["192.0.2.1","2001:db8::1"]}`},
		{"namespace", ToNamespace, &api.Namespace{ObjectMeta: meta.ObjectMeta{Name: "ns1", ResourceVersion: "1"}}, `{"Version":"1","Name":"ns1"}`},
		{"import of the API's type", ToServiceImport, newImportOfAPI(), `{"Version":"8","Name":"db","Namespace":"ns1","Index":"db.ns1","ClusterIPs":["192.0.2.9"],"Type":"Headless","Ports":[{"name":"sql","protocol":"TCP","appProtocol":"x","port":5432}]}`},
		{"import", ToServiceImport, newImport(), `{"Version":"8","Name":"db","Namespace":"ns1","Index":"db.ns1","ClusterIPs":["192.0.2.9"],"Type":"Headless","Ports":[{"name":"sql","protocol":"TCP","appProtocol":"x","port":5432}]}`},
	} {
		got := convert(t, tc.f, tc.obj)
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, b, tc.want)
		}
		if !reflect.ValueOf(tc.obj).Elem().IsZero() {
			t.Errorf("%s: the original still holds %+v", tc.name, tc.obj)
		}
	}
	zones := convert(t, EndpointSliceToEndpointsWithZones, newEndpointSlice()).(*Endpoints).Zones
	if fmt.Sprint(zones) != "map[192.0.2.1:zone-a 192.0.2.2:zone-a]" {
		t.Errorf("zones %v", zones)
	}
	mc := convert(t, EndpointSliceToMultiClusterEndpoints, newEndpointSlice()).(*MultiClusterEndpoints)
	if mc.ClusterId != "east" || mc.Index != "far.ns1" || mc.GetName() != "web-a" || len(mc.Subsets[0].Addresses) != 3 {
		t.Errorf("multicluster endpoints %+v", mc)
	}
	imported := convert(t, ToServiceImport, newImport()).(*ServiceImport)
	if typ := imported.Type; typ != newImportOfAPI().Spec.Type { // they are of one type
		t.Errorf("type %s", typ)
	}
	if !imported.Headless() {
		t.Error("the import is not headless")
	}
}

func TestWrongType(t *testing.T) {
	for i, f := range []ToFunc{ToService, EndpointSliceToEndpoints, EndpointSliceToEndpointsWithZones, EndpointSliceToMultiClusterEndpoints, ToPod, ToNamespace, ToServiceImport} {
		if _, err := f(&api.Node{ObjectMeta: meta.ObjectMeta{Name: "n"}}); err == nil || !strings.HasPrefix(err.Error(), "unexpected object ") {
			t.Errorf("conversion %d: %v", i, err)
		}
	}
	if _, err := ToServiceImport(&ServiceImport{}); err == nil {
		t.Error("a trimmed import was trimmed again")
	}
}

func TestTerminatingPod(t *testing.T) {
	p := newPod()
	p.DeletionTimestamp = &meta.Time{Time: time.Unix(1, 0)}
	obj, err := ToPod(p)
	if err == nil || obj == nil || obj.GetName() != "p1" {
		t.Errorf("%+v, %v", obj, err)
	}
}

// TestForeignImport converts an import of a Go type that we do not know.
func TestForeignImport(t *testing.T) {
	type ServiceImport struct {
		meta.TypeMeta
		meta.ObjectMeta `json:"metadata"`
		Spec            map[string]any `json:"spec"`
	}
	obj := &ServiceImport{ObjectMeta: meta.ObjectMeta{Name: "db", Namespace: "ns1"}, Spec: map[string]any{"type": "ClusterSetIP", "ips": []string{"192.0.2.1"}}}
	s, err := ToServiceImport(obj)
	if err != nil {
		t.Fatal(err)
	}
	if s.GetName() != "db" || obj.Name != "" {
		t.Errorf("%+v of %+v", s, obj)
	}
}

func TestKeys(t *testing.T) {
	for _, f := range []func(string, string) string{ServiceKey, EndpointsKey, ServiceImportKey, MultiClusterEndpointsKey} {
		if got := f("name", "ns"); got != "name.ns" {
			t.Error(got)
		}
	}
}

// TestDeepCopy sees that a copy is equal and that no memory is shared.
func TestDeepCopy(t *testing.T) {
	for _, obj := range []trimmed{
		convert(t, ToService, newService()),
		convert(t, EndpointSliceToEndpointsWithZones, newEndpointSlice()),
		convert(t, EndpointSliceToMultiClusterEndpoints, newEndpointSlice()),
		convert(t, ToPod, newPod()),
		convert(t, ToServiceImport, newImport()),
		convert(t, ToNamespace, &api.Namespace{ObjectMeta: meta.ObjectMeta{Name: "ns1"}}),
	} {
		c := obj.DeepCopyObject()
		if !reflect.DeepEqual(obj, c) || reflect.TypeOf(obj) != reflect.TypeOf(c) {
			t.Errorf("%T: the copy is %+v of %+v", obj, c, obj)
		}
		seen := map[uintptr]bool{}
		pointers(reflect.ValueOf(obj), func(p uintptr) { seen[p] = true })
		pointers(reflect.ValueOf(c), func(p uintptr) {
			if seen[p] {
				t.Errorf("%T shares memory with its copy", obj)
			}
		})
	}
	e := convert(t, EndpointSliceToEndpoints, newEndpointSlice()).(*Endpoints)
	if c := e.CopyWithoutSubsets(); c.Subsets != nil || c.Name != e.Name || len(c.IndexIP) != 3 || len(e.Subsets) != 1 {
		t.Errorf("copy without subsets: %+v", c)
	}
}

// pointers calls f with all memory that v points to.
func pointers(v reflect.Value, f func(uintptr)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			f(v.Pointer())
			pointers(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			pointers(v.Field(i), f)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			f(v.Pointer())
		}
		for i := range v.Len() {
			pointers(v.Index(i), f)
		}
	case reflect.Map:
		if !v.IsNil() {
			f(v.Pointer())
		}
	}
}

// TestEmpty sees that nothing can be set and that the embedded nil does no harm.
func TestEmpty(t *testing.T) {
	for _, obj := range []trimmed{&Service{Name: "a", Namespace: "b", Version: "c"}, &Endpoints{Name: "a", Namespace: "b", Version: "c"},
		&Pod{Name: "a", Namespace: "b", Version: "c"}, &ServiceImport{Name: "a", Namespace: "b", Version: "c"}, &Namespace{Name: "a", Version: "c"}} {
		v := reflect.ValueOf(obj)
		for i := range v.NumMethod() {
			name, typ := v.Type().Method(i).Name, v.Method(i).Type()
			var args []reflect.Value
			if strings.HasPrefix(name, "Set") {
				args = append(args, reflect.Zero(typ.In(0)))
			}
			if typ.NumIn() == len(args) {
				v.Method(i).Call(args)
			}
		}
		if obj.GetName() != "a" || obj.GetResourceVersion() != "c" || obj.GetObjectKind() == nil {
			t.Errorf("%T: %+v", obj, obj)
		}
		if _, is := obj.(*Namespace); !is && obj.GetNamespace() != "b" {
			t.Errorf("%T: namespace %q", obj, obj.GetNamespace())
		}
	}
}
