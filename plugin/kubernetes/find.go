package kubernetes

import (
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// matchKind says what there is at a name.
type matchKind uint8

const (
	nothing      matchKind = iota
	bareMatch              // the name exists, without records
	versionMatch           // the version of the specification
	serversMatch           // the server's own addresses
	podMatch               // one address
	clusterMatch           // a service with addresses of its own
	aliasMatch             // a service that stands for a name elsewhere
	endsMatch              // endpoints of a service; whether there are some shows only when they are walked over
)

// match is what the cluster has at a name.
type match struct {
	kind matchKind
	svc  *store.Service // of a service
	addr netip.Addr     // of a pod
}

// find looks a name up.
func (p *plan) find(s *store.Store, n *name, multicluster bool) match {
	switch n.kind {
	case branchName:
		return match{kind: bareMatch}
	case versionName:
		return match{kind: versionMatch}
	case serversName:
		return match{kind: serversMatch}
	case spaceName:
		if s.Exposed(n.namespace) && !(n.pods && p.pods == podsDisabled) {
			return match{kind: bareMatch}
		}
	case podName:
		return p.findPod(s, n)
	case serviceName:
		return p.findService(s, n, multicluster)
	}
	return match{}
}

func (p *plan) findPod(s *store.Store, n *name) match {
	if p.pods == podsDisabled || !s.Exposed(n.namespace) {
		return match{}
	}
	addr, ok := dashedAddr(n.service)
	if !ok || p.pods == podsVerified && !s.HasPod(n.namespace, addr) {
		return match{}
	}
	return match{kind: podMatch, addr: addr}
}

func (p *plan) findService(s *store.Store, n *name, multicluster bool) match {
	if !s.Exposed(n.namespace) {
		return match{}
	}
	svc := s.Service(n.namespace, n.service)
	if multicluster {
		svc = s.ServiceImport(n.namespace, n.service)
	}
	if svc == nil {
		return match{}
	}
	target, alias := svc.ExternalName()
	switch {
	case alias && n.bare() && !isAddr(target):
		return match{kind: aliasMatch, svc: svc}
	case alias, n.direction != anywhere && !svc.Headless():
		return match{}
	case svc.Headless(), n.endpoint != nil:
		return match{kind: endsMatch, svc: svc}
	case len(svc.ClusterIPs()) == 0, countPorts(svc.Ports(), n, !multicluster) == 0:
		return match{}
	case p.ignoreEmpty && !multicluster && !hasEndpoints(s, n):
		return match{}
	}
	return match{kind: clusterMatch, svc: svc}
}

// isAddr reports whether a name is an IP address. Only what looks like one is parsed, as the error would cost memory.
func isAddr(text string) bool {
	if strings.Trim(text, "0123456789.") != "" && !strings.Contains(text, ":") {
		return false
	}
	_, err := netip.ParseAddr(text)
	return err == nil
}

func hasEndpoints(s *store.Store, n *name) bool {
	all := s.Slices(n.namespace, n.service)
	for sl := all.Next(); sl != nil; sl = all.Next() {
		if sl.Len() > 0 {
			return true
		}
	}
	return false
}

// noPort stands where a service or slice has no ports at all: so it has its addresses all the same. An imported service is
// without them, but not its slices.
var noPort = store.Port{Number: -1}

// wants reports whether a name asks for the port p.
func (n *name) wants(p *store.Port) bool {
	return (len(n.port) == 0 || string(n.port) == p.Name) && (len(n.protocol) == 0 || string(n.protocol) == p.Protocol)
}

// countPorts counts the ports that a name asks for. Where there are none at all, portless tells whether that counts as one without a number.
func countPorts(ports []store.Port, n *name, portless bool) (count int) {
	if len(ports) == 0 && portless && n.wants(&noPort) {
		return 1
	}
	for i := range ports {
		if n.wants(&ports[i]) {
			count++
		}
	}
	return count
}
