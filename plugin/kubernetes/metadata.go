package kubernetes

import (
	"context"
	"net/netip"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"
)

// Metadata implements metadata.Provider: it offers what the name of the query spells, if it is in one of the zones, and
// with "pods verified" who asks.
func (k *Kubernetes) Metadata(ctx context.Context, state request.Request) context.Context {
	if k.pods == podsVerified {
		k.clientMetadata(ctx, &state)
	}
	zone := plugin.Zones(k.Zones).Matches(state.Name())
	if zone == "" {
		return ctx
	}
	n, z, err := k.parseText(state.Name(), zone)
	if err != nil {
		metadata.SetValueFunc(ctx, "kubernetes/parse-error", err.Error)
		return ctx
	}
	set := func(label string, value []byte) {
		metadata.SetValueFunc(ctx, "kubernetes/"+label, func() string { return string(value) })
	}
	set("kind", []byte(n.branch()))
	set("namespace", n.namespace)
	set("service", n.service)
	set("endpoint", n.endpoint)
	set("port-name", n.port)
	set("protocol", n.protocol)
	if k.zonal {
		metadata.SetValueFunc(ctx, "kubernetes/zone", func() string { return topologyText(n.topology) })
	}
	if z.multicluster {
		set("cluster", n.cluster)
	}
	return ctx
}

// topologyText joins labels in wire form by dots.
func topologyText(labels []byte) string {
	var b []byte
	for ; len(labels) > 0; labels = labels[1+int(labels[0]):] {
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, labels[1:1+int(labels[0])]...)
	}
	return string(b)
}

// clientMetadata offers which pod asks.
func (k *Kubernetes) clientMetadata(ctx context.Context, state *request.Request) {
	pod := k.podWithIP(state.IP())
	if pod == nil {
		return
	}
	metadata.SetValueFunc(ctx, "kubernetes/client-namespace", func() string { return pod.Namespace })
	metadata.SetValueFunc(ctx, "kubernetes/client-pod-name", func() string { return pod.Name })
	for key, value := range pod.Labels {
		metadata.SetValueFunc(ctx, "kubernetes/client-label/"+key, func() string { return value })
	}
}

// podWithIP returns the pod that owns an address alone, or nil.
func (k *Kubernetes) podWithIP(ip string) *object.Pod {
	if c, ok := k.APIConn.(*controller); ok {
		addr, err := netip.ParseAddr(ip)
		if err != nil {
			return nil
		}
		s, _ := c.known()
		if p := s.PodAt(addr); p != nil {
			return podObject(p)
		}
		return nil
	}
	if k.APIConn == nil {
		return nil
	}
	if pods := k.APIConn.PodIndex(ip); len(pods) == 1 {
		return pods[0]
	}
	return nil
}

// parseText reads a name in text form. The zone, of which it is at or below, is in lower case.
func (k *Kubernetes) parseText(qname, zoneText string) (n name, z *zone, err error) {
	p := k.compiled()
	lower, err := wire.LowerName(qname)
	if err != nil {
		return n, nil, err
	}
	of, err := wire.LowerName(zoneText)
	if err != nil {
		return n, nil, err
	}
	z, ok := p.zones.Get(of)
	if !ok || !wire.Below(lower, of) {
		return n, nil, errInvalidName
	}
	if len(lower) == len(of) {
		return name{kind: branchName}, z, nil
	}
	if n = parse(lower, len(lower)-len(of), z.multicluster, p.zonal); n.kind == noName {
		return n, z, errInvalidName
	}
	return n, z, nil
}

// branch is the label that stands before the zone, if it is one of the specification's.
func (n *name) branch() string {
	switch {
	case n.pods:
		return Pod
	case n.namespace != nil:
		return Svc
	}
	return ""
}
