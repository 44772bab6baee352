package lean

import (
	"errors"
	"net/netip"
)

// ServiceImport is what DNS needs of a multicluster.x-k8s.io/v1alpha1 ServiceImport.
type ServiceImport struct {
	Meta Meta
	// Headless is set for the type Headless, the other one being ClusterSetIP.
	Headless bool
	IPs      []netip.Addr
	Ports    []Port
}

// Metadata implements Object.
func (s *ServiceImport) Metadata() *Meta { return &s.Meta }

func (s *ServiceImport) reset() {
	s.Meta.reset()
	s.Headless, s.IPs, s.Ports = false, s.IPs[:0], s.Ports[:0]
}

var errNoProtobuf = errors.New("custom resources have no protobuf form")

// Decode implements Object. A ServiceImport is a custom resource: API servers write it as JSON alone.
func (s *ServiceImport) Decode(b []byte, e Encoding) error {
	s.reset()
	if e != JSON {
		return errNoProtobuf
	}
	return s.json(b)
}
