package object

import (
	"slices"

	api "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Service is a trimmed api.Service.
type Service struct {
	Version   string // resource version
	Name      string
	Namespace string
	// Index is ServiceKey of the two above.
	Index string
	// ClusterIPs are spec.clusterIPs, or spec.clusterIP alone; "None" if headless.
	ClusterIPs   []string
	Type         api.ServiceType
	ExternalName string
	// Ports has one port with number -1 if the service has none.
	Ports []api.ServicePort
	// ExternalIPs are spec.externalIPs, then the load balancer's addresses or names.
	ExternalIPs []string

	*Empty
}

// ServiceKey returns the index key of a service: "name.namespace".
func ServiceKey(name, namespace string) string { return name + "." + namespace }

// ToService converts an *api.Service to a *Service. See ToFunc.
func ToService(obj meta.Object) (meta.Object, error) {
	svc, ok := obj.(*api.Service)
	if !ok {
		return nil, unexpected(obj)
	}
	s := &Service{
		Version:      svc.ResourceVersion,
		Name:         svc.Name,
		Namespace:    svc.Namespace,
		Index:        ServiceKey(svc.Name, svc.Namespace),
		ClusterIPs:   svc.Spec.ClusterIPs,
		Type:         svc.Spec.Type,
		ExternalName: svc.Spec.ExternalName,
		Ports:        svc.Spec.Ports,
		ExternalIPs:  externalIPs(svc),
	}
	if len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{svc.Spec.ClusterIP}
	}
	if len(s.Ports) == 0 {
		s.Ports = []api.ServicePort{{Port: -1}}
	}
	*svc = api.Service{}
	return s, nil
}

func externalIPs(svc *api.Service) []string {
	ingress := svc.Status.LoadBalancer.Ingress
	all := make([]string, 0, len(svc.Spec.ExternalIPs)+len(ingress))
	all = append(all, svc.Spec.ExternalIPs...)
	for _, in := range ingress {
		switch {
		case in.IP != "":
			all = append(all, in.IP)
		case in.Hostname != "":
			all = append(all, in.Hostname)
		}
	}
	return all
}

// Headless reports whether the service has no cluster address of its own.
func (s *Service) Headless() bool {
	return len(s.ClusterIPs) > 0 && s.ClusterIPs[0] == api.ClusterIPNone
}

// DeepCopyObject implements runtime.Object.
func (s *Service) DeepCopyObject() runtime.Object {
	c := *s
	c.ClusterIPs = slices.Clone(s.ClusterIPs)
	c.ExternalIPs = slices.Clone(s.ExternalIPs)
	c.Ports = slices.Clone(s.Ports)
	for i := range c.Ports {
		s.Ports[i].DeepCopyInto(&c.Ports[i])
	}
	return &c
}

// GetNamespace implements meta.Object.
func (s *Service) GetNamespace() string { return s.Namespace }

// SetNamespace implements meta.Object and does nothing.
func (s *Service) SetNamespace(string) {}

// GetName implements meta.Object.
func (s *Service) GetName() string { return s.Name }

// SetName implements meta.Object and does nothing.
func (s *Service) SetName(string) {}

// GetResourceVersion implements meta.Object.
func (s *Service) GetResourceVersion() string { return s.Version }

// SetResourceVersion implements meta.Object and does nothing.
func (s *Service) SetResourceVersion(string) {}
