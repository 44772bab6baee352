// Package kubernetes answers for the names of a Kubernetes cluster, as its DNS specification 1.1.0 has them.
//
//	Kubernetes API ──package store──▶ services, endpoints, pods
//	                                        │
//	query ──plan: which zone──▶ name ──find─┴──▶ match ──answer──▶ reply
//	        plan.go             name.go  find.go         answer.go srv.go alias.go reverse.go nameserver.go
//
// A name is read from the labels of the query where they lie, the store is asked without locks, and records are written
// straight into the reply: what a cluster asks for all the time is answered without an allocation. Both lanes ask
// Kubernetes.decide. Only the alias to a name that the cluster does not have has to leave it, as it asks the server
// anew.
//
// The exported methods that make messages of miekg/dns and services of etcd/msg are for other plugins (backend.go,
// external.go, autopath.go); they convert what they are asked for from the same store.
//
// Any number of goroutines may serve with one Kubernetes, or with copies of it, once the fields are set. Start at
// Kubernetes.ServeDNS and answer.respond; start.go follows the API, setup.go has the options.
package kubernetes

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"k8s.io/client-go/tools/clientcmd"
)

const pluginName = "kubernetes"

var logger = log.NewWithPlugin(pluginName)

const (
	// DNSSchemaVersion is the version of the Kubernetes DNS specification; TXT of dns-version.ZONE tells it.
	DNSSchemaVersion = "1.1.0"
	// Svc is the label below which services stand.
	Svc = "svc"
	// Pod is the label below which pods stand.
	Pod = "pod"
	// Endpoint and PortProtocol name the two things that labels before a service may be.
	Endpoint     = "endpoint"
	PortProtocol = "port.protocol"
)

// Upstreamer resolves names that are not the cluster's; upstream.Upstream is one.
type Upstreamer interface {
	Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error)
}

// Kubernetes is the plugin. Its fields are to be set before it serves.
type Kubernetes struct {
	Next plugin.Handler
	// Zones are fully qualified and in lower case. The first one that is no reverse zone is where PTR records lead.
	Zones []string
	// Upstream follows aliases out of the cluster.
	Upstream Upstreamer

	// APIServerList are URLs of the API, of which the first counts. The files are for TLS.
	APIServerList                            []string
	APICertAuth, APIClientCert, APIClientKey string
	// ClientConfig, if set, counts before APIServerList. Without both the cluster is the one that the server runs in.
	ClientConfig clientcmd.ClientConfig

	// APIConn is made by InitKubeCache. Another implementation is asked for pods and whether it has synced, but
	// services and endpoints come from our own alone.
	APIConn dnsController
	// Namespaces are those that are exposed; all if it is empty.
	Namespaces map[string]struct{}
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	options
	shared *shared // nil in a Kubernetes that New did not make
}

// shared is what all copies of a Kubernetes have in common.
type shared struct {
	plan   atomic.Pointer[plan]         // see Kubernetes.compiled
	local  atomic.Pointer[[]netip.Addr] // the server's own addresses; see localAddrs
	search atomic.Pointer[[]string]     // the host's search list
	spans  spans                        // addresses in use, for partial reverse names
	beyond spans                        // the same of those outside; see ExternalSpan
	config *dnsserver.Config            // of the server block, nil without one
}

// New returns a Kubernetes for zones with the default options.
func New(zones []string) *Kubernetes {
	return &Kubernetes{
		Zones:      zones,
		Upstream:   upstream.New(),
		Namespaces: make(map[string]struct{}),
		options:    defaults,
		shared:     new(shared),
	}
}

// Name implements plugin.Handler.
func (k Kubernetes) Name() string { return pluginName }

// Ready reports whether all there is has been read from the API once. It implements ready.Readiness.
func (k *Kubernetes) Ready() bool { return k.APIConn != nil && k.APIConn.HasSynced() }

// ServeDNS implements plugin.Handler.
func (k Kubernetes) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeUpdate { // is for who serves the zone from its own data
		return plugin.NextOrFailure(pluginName, k.Next, ctx, w, r)
	}
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil { // no name of ours
		return plugin.NextOrFailure(pluginName, k.Next, ctx, w, r)
	}
	defer adapter.Free()
	result, target := k.decide(&adapter.Reply, &adapter.Query)
	switch result {
	case pass:
		return plugin.NextOrFailure(pluginName, k.Next, ctx, w, r)
	case outside, elsewhere:
		k.followOut(ctx, adapter, request.Request{W: w, Req: r}, target, result == elsewhere)
	}
	return adapter.Write()
}

// ServeWire implements plugin.WireHandler.
func (k *Kubernetes) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	switch result, _ := k.decide(w, q); result {
	case pass:
		return plugin.NextWire(pluginName, k.Next, ctx, w, q)
	case outside, elsewhere:
		return wire.Unpack
	case later:
		return wire.Block
	}
	w.SetWriter(pluginName)
	return wire.Done
}

// WireSelf implements plugin.WireHandler.
func (k *Kubernetes) WireSelf() plugin.Handler { return k }
