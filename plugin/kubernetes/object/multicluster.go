package object

import (
	"encoding/json"
	"reflect"
	"slices"

	api "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Labels of an endpoint slice that another cluster exports (KEP-1645).
const (
	labelServiceName   = "multicluster.kubernetes.io/service-name"
	labelSourceCluster = "multicluster.kubernetes.io/source-cluster"
)

// ServiceImportType says how an imported service is reached.
type ServiceImportType string

// The types of imported services.
const (
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	Headless     ServiceImportType = "Headless"
)

// ServiceImportPort is a port of an imported service.
type ServiceImportPort struct {
	Name        string       `json:"name,omitempty"`
	Protocol    api.Protocol `json:"protocol,omitempty"`
	AppProtocol *string      `json:"appProtocol,omitempty"`
	Port        int32        `json:"port"`
}

// ServiceImport is a trimmed ServiceImport of multicluster.x-k8s.io/v1alpha1.
type ServiceImport struct {
	Version   string // resource version
	Name      string
	Namespace string
	// Index is ServiceImportKey of the two above.
	Index      string
	ClusterIPs []string
	Type       ServiceImportType
	Ports      []ServiceImportPort

	*Empty
}

// ServiceImportKey returns the index key of an imported service: "name.namespace".
func ServiceImportKey(name, namespace string) string { return name + "." + namespace }

// ToServiceImport converts a ServiceImport to a *ServiceImport. See ToFunc.
//
// The API's Go type lives in a module that we do not depend on. It is known by its name
// and read through its JSON form; *unstructured.Unstructured of that kind works, too.
func ToServiceImport(obj meta.Object) (meta.Object, error) {
	if !isServiceImport(obj) {
		return nil, unexpected(obj)
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil, unexpected(obj)
	}
	var whole struct {
		Spec struct {
			Type  ServiceImportType   `json:"type"`
			IPs   []string            `json:"ips"`
			Ports []ServiceImportPort `json:"ports"`
		} `json:"spec"`
	}
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
func (s *ServiceImport) Headless() bool { return s.Type == Headless }

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
	e := &MultiClusterEndpoints{Endpoints: *trimSlice(slice, false), ClusterId: slice.Labels[labelSourceCluster]}
	e.Index = MultiClusterEndpointsKey(slice.Labels[labelServiceName], slice.Namespace)
	*slice = discovery.EndpointSlice{}
	return e, nil
}

// DeepCopyObject implements runtime.Object.
func (e *MultiClusterEndpoints) DeepCopyObject() runtime.Object {
	return &MultiClusterEndpoints{Endpoints: *e.Endpoints.DeepCopyObject().(*Endpoints), ClusterId: e.ClusterId}
}
