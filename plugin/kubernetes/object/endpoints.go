package object

import (
	"maps"
	"slices"
	"strings"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Endpoints is a trimmed discovery.EndpointSlice: its ready endpoints.
type Endpoints struct {
	Version   string // resource version
	Name      string // the slice's
	Namespace string
	// Index is EndpointsKey of the service that the slice belongs to.
	Index string
	// IndexIP are the addresses of Subsets, in their order.
	IndexIP []string
	// Subsets has one element, the slice.
	Subsets []EndpointSubset
	// Zones has the zone, in lower case, of each address that has one. It is
	// only filled in by EndpointSliceToEndpointsWithZones.
	Zones map[string]string

	*Empty
}

// EndpointSubset is a set of addresses that all have the same ports.
type EndpointSubset struct {
	Addresses []EndpointAddress
	Ports     []EndpointPort
}

// EndpointAddress is one address of an endpoint.
type EndpointAddress struct {
	IP       string
	Hostname string
	NodeName string
	// TargetRefName is the name of the endpoint's pod if it can be a label of a domain name.
	TargetRefName string
}

// EndpointPort is one port; its number is -1 where the slice gives none.
type EndpointPort struct {
	Port     int32
	Name     string
	Protocol string
}

// maxLabel is how long a label of a domain name may be (RFC 1035 §2.3.4).
const maxLabel = 63

// EndpointsKey returns the index key of the endpoints of a service: "name.namespace".
func EndpointsKey(name, namespace string) string { return name + "." + namespace }

// EndpointSliceToEndpoints converts a *discovery.EndpointSlice to *Endpoints. See ToFunc.
func EndpointSliceToEndpoints(obj meta.Object) (meta.Object, error) { return convertSlice(obj, false) }

// EndpointSliceToEndpointsWithZones is EndpointSliceToEndpoints that also keeps zones.
func EndpointSliceToEndpointsWithZones(obj meta.Object) (meta.Object, error) {
	return convertSlice(obj, true)
}

func convertSlice(obj meta.Object, zones bool) (meta.Object, error) {
	slice, ok := obj.(*discovery.EndpointSlice)
	if !ok {
		return nil, unexpected(obj)
	}
	e := trimSlice(slice, zones)
	e.Index = EndpointsKey(slice.Labels[discovery.LabelServiceName], slice.Namespace)
	*slice = discovery.EndpointSlice{}
	return e, nil
}

// trimSlice does all of the conversion but the index.
func trimSlice(slice *discovery.EndpointSlice, zones bool) *Endpoints {
	e := &Endpoints{
		Version:   slice.ResourceVersion,
		Name:      slice.Name,
		Namespace: slice.Namespace,
		Subsets:   []EndpointSubset{{Ports: trimPorts(slice.Ports)}},
	}
	sub := &e.Subsets[0]
	for i := range slice.Endpoints {
		end := &slice.Endpoints[i]
		if end.Conditions.Ready != nil && !*end.Conditions.Ready {
			continue
		}
		a := EndpointAddress{Hostname: deref(end.Hostname), NodeName: deref(end.NodeName)}
		if end.TargetRef != nil && len(end.TargetRef.Name) <= maxLabel {
			a.TargetRefName = end.TargetRef.Name
		}
		for _, a.IP = range end.Addresses {
			sub.Addresses = append(sub.Addresses, a)
			e.IndexIP = append(e.IndexIP, a.IP)
			if zone := deref(end.Zone); zones && zone != "" {
				if e.Zones == nil {
					e.Zones = make(map[string]string)
				}
				e.Zones[a.IP] = strings.ToLower(zone)
			}
		}
	}
	return e
}

func trimPorts(from []discovery.EndpointPort) []EndpointPort {
	if len(from) == 0 {
		return []EndpointPort{{Port: -1}}
	}
	to := make([]EndpointPort, len(from))
	for i, p := range from {
		to[i] = EndpointPort{Port: -1, Name: deref(p.Name), Protocol: string(deref(p.Protocol))}
		if p.Port != nil {
			to[i].Port = *p.Port
		}
	}
	return to
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// CopyWithoutSubsets returns a copy that has no Subsets.
func (e *Endpoints) CopyWithoutSubsets() *Endpoints {
	c := *e
	c.Subsets = nil
	c.IndexIP = slices.Clone(e.IndexIP)
	c.Zones = maps.Clone(e.Zones)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (e *Endpoints) DeepCopyObject() runtime.Object {
	c := e.CopyWithoutSubsets()
	c.Subsets = slices.Clone(e.Subsets)
	for i, sub := range c.Subsets {
		c.Subsets[i] = EndpointSubset{Addresses: slices.Clone(sub.Addresses), Ports: slices.Clone(sub.Ports)}
	}
	return c
}

// GetNamespace implements meta.Object.
func (e *Endpoints) GetNamespace() string { return e.Namespace }

// SetNamespace implements meta.Object and does nothing.
func (e *Endpoints) SetNamespace(string) {}

// GetName implements meta.Object.
func (e *Endpoints) GetName() string { return e.Name }

// SetName implements meta.Object and does nothing.
func (e *Endpoints) SetName(string) {}

// GetResourceVersion implements meta.Object.
func (e *Endpoints) GetResourceVersion() string { return e.Version }

// SetResourceVersion implements meta.Object and does nothing.
func (e *Endpoints) SetResourceVersion(string) {}
