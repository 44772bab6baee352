package object

import (
	"encoding/json"
	"reflect"
	"slices"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	mcs "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

// ServiceImport is a trimmed ServiceImport of multicluster.x-k8s.io/v1alpha1.
type ServiceImport struct {
	Version   string // resource version
	Name      string
	Namespace string
	// Index is ServiceImportKey of the two above.
	Index      string
	ClusterIPs []string
	Type       mcs.ServiceImportType
	Ports      []mcs.ServicePort

	*Empty
}

// ServiceImportKey returns the index key of an imported service: "name.namespace".
func ServiceImportKey(name, namespace string) string { return name + "." + namespace }

// ToServiceImport converts a ServiceImport to a *ServiceImport. See ToFunc.
//
// It may be the API's own, *unstructured.Unstructured of that kind, or a type of that name of some other version of the
// API: what is read is its JSON form.
func ToServiceImport(obj meta.Object) (meta.Object, error) {
	if !isServiceImport(obj) {
		return nil, unexpected(obj)
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, unexpected(obj)
	}
	var whole mcs.ServiceImport
	if err := json.Unmarshal(b, &whole); err != nil {
		return nil, unexpected(obj)
	}
	s := &ServiceImport{
		Version:    obj.GetResourceVersion(),
		Name:       obj.GetName(),
		Namespace:  obj.GetNamespace(),
		Index:      ServiceImportKey(obj.GetName(), obj.GetNamespace()),
		ClusterIPs: whole.Spec.IPs,
		Type:       whole.Spec.Type,
		Ports:      whole.Spec.Ports,
	}
	reflect.ValueOf(obj).Elem().SetZero()
	return s, nil
}

func isServiceImport(obj meta.Object) bool {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u != nil && u.GetKind() == "ServiceImport"
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return false
	}
	_, trimmed := obj.(*ServiceImport)
	return v.Elem().Type().Name() == "ServiceImport" && !trimmed
}

// Headless reports whether the imported service has no address of its own.
func (s *ServiceImport) Headless() bool { return s.Type == mcs.Headless }

// DeepCopyObject implements runtime.Object.
func (s *ServiceImport) DeepCopyObject() runtime.Object {
	c := *s
	c.ClusterIPs = slices.Clone(s.ClusterIPs)
	c.Ports = slices.Clone(s.Ports)
	for i, p := range c.Ports {
		if p.AppProtocol != nil {
			app := *p.AppProtocol
			c.Ports[i].AppProtocol = &app
		}
	}
	return &c
}

// GetNamespace implements meta.Object.
func (s *ServiceImport) GetNamespace() string { return s.Namespace }

// SetNamespace implements meta.Object and does nothing.
func (s *ServiceImport) SetNamespace(string) {}

// GetName implements meta.Object.
func (s *ServiceImport) GetName() string { return s.Name }

// SetName implements meta.Object and does nothing.
func (s *ServiceImport) SetName(string) {}

// GetResourceVersion implements meta.Object.
func (s *ServiceImport) GetResourceVersion() string { return s.Version }

// SetResourceVersion implements meta.Object and does nothing.
func (s *ServiceImport) SetResourceVersion(string) {}

// MultiClusterEndpoints are the Endpoints of an imported service in one cluster.
type MultiClusterEndpoints struct {
	Endpoints
	// ClusterId names the cluster that the endpoints are in.
	ClusterId string //nolint:revive // others compile against this spelling
}

// MultiClusterEndpointsKey returns the index key of the endpoints of an imported service: "name.namespace".
func MultiClusterEndpointsKey(name, namespace string) string { return name + "." + namespace }

// EndpointSliceToMultiClusterEndpoints converts a *discovery.EndpointSlice of an imported service to *MultiClusterEndpoints. See ToFunc.
func EndpointSliceToMultiClusterEndpoints(obj meta.Object) (meta.Object, error) {
	slice, ok := obj.(*discovery.EndpointSlice)
	if !ok {
		return nil, unexpected(obj)
	}
	e := &MultiClusterEndpoints{Endpoints: *trimSlice(slice, false), ClusterId: slice.Labels[mcs.LabelSourceCluster]}
	e.Index = MultiClusterEndpointsKey(slice.Labels[mcs.LabelServiceName], slice.Namespace)
	*slice = discovery.EndpointSlice{}
	return e, nil
}

// DeepCopyObject implements runtime.Object.
func (e *MultiClusterEndpoints) DeepCopyObject() runtime.Object {
	return &MultiClusterEndpoints{Endpoints: *e.Endpoints.DeepCopyObject().(*Endpoints), ClusterId: e.ClusterId}
}
