package kubernetes

import (
	"slices"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// resolvConf is where the machine's own search list stands. Only tests change it.
var resolvConf = "/etc/resolv.conf"

// AutoPath returns the search list of the pod that asks, an empty element at its end: its namespace's services, all services,
// the cluster, and the machine's own list. It is nil if the query is for none of the zones or no pod is known to own the
// client's address alone. It needs "pods verified". It implements autopath.AutoPather.
func (k *Kubernetes) AutoPath(state request.Request) []string {
	zone := plugin.Zones(k.Zones).Matches(state.Name())
	if zone == "" || k.pods != podsVerified || !k.Ready() {
		return nil
	}
	pod := k.podWithIP(state.IP())
	if pod == nil {
		return nil
	}
	search := []string{dnsutil.Join(pod.Namespace, Svc, zone), dnsutil.Join(Svc, zone), zone}
	return append(append(search, k.hostSearch()...), "")
}

// hostSearch returns the machine's own search list, which is read once.
func (k *Kubernetes) hostSearch() []string {
	if k.shared == nil {
		return readSearch()
	}
	if s := k.shared.search.Load(); s != nil {
		return *s
	}
	s := readSearch()
	k.shared.search.Store(&s)
	return s
}

func readSearch() []string {
	conf, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return nil
	}
	search := slices.Clone(conf.Search)
	plugin.Zones(search).Normalize()
	return search
}
