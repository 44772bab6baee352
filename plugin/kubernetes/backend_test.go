package kubernetes

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

var _ plugin.ServiceBackend = (*Kubernetes)(nil)

// TestBackendAgrees makes the replies to the questions of testdata from services, with the functions for
// backends, and compares them with what is expected of the server.
func TestBackendAgrees(t *testing.T) {
	compared := 0
	for _, s := range scripts(t) {
		t.Run(filepath.Base(s.path), func(t *testing.T) {
			s.each(t, func(k *Kubernetes, qname string, typ uint16, want string) string {
				if got, ok := viaBackend(t, k, qname, typ); ok {
					compared++
					if got != want {
						t.Errorf("%s\nbackend %s\nserver  %s", questionText(qname, typ), indent(got), indent(want))
					}
				}
				return want
			})
		})
	}
	if compared < 150 {
		t.Errorf("only %d replies were compared", compared)
	}
}

// TestAliasChains lets more and more aliases lead from one to the other. As with other backends, eleven are not too many.
func TestAliasChains(t *testing.T) {
	k := serving(t, "kubernetes cluster.local")
	put(t, storeOf(k), "kind: Service\nmetadata: {name: chain-0, namespace: shop}\nspec: {clusterIP: 10.96.0.77}")
	for i := range 13 {
		put(t, storeOf(k), fmt.Sprintf("kind: Service\nmetadata: {name: chain-%d, namespace: shop}\nspec: {type: ExternalName, externalName: chain-%d.shop.svc.cluster.local}", i+1, i))
	}
	for n := range 14 {
		qname := fmt.Sprintf("chain-%d.shop.svc.cluster.local.", n)
		m := ask(t, k, qname, dns.TypeA)
		if want, _ := viaBackend(t, k, qname, dns.TypeA); describe(m) != want || (len(m.Answer) == n+1) != (n <= 11) {
			t.Errorf("%d aliases:\n%s, via the backend\n%s", n, describe(m), want)
		}
	}
}

// viaBackend makes a reply from services. It reports false for questions that backends have no functions for.
func viaBackend(t *testing.T, k *Kubernetes, qname string, typ uint16) (string, bool) {
	zone := plugin.Zones(k.Zones).Matches(qname)
	if zone == "" {
		return passed, true
	}
	reverse := dnsutil.IsReverse("."+zone) > 0
	if zone != "." {
		zone = qname[len(qname)-len(zone):]
	}
	ctx, opt := context.Background(), plugin.Options{}
	state := request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion(qname, typ), Zone: zone}
	m := new(dns.Msg).SetReply(state.Req)
	m.Authoritative = true
	var err error
	switch {
	case typ == dns.TypeSOA && len(qname) == len(zone):
		m.Answer, err = plugin.SOA(ctx, k, zone, state, opt)
	case typ == dns.TypePTR && dnsutil.ExtractAddressFromReverse(qname) != "":
		m.Answer, err = plugin.PTR(ctx, k, zone, state, opt)
	case reverse: // partial names, and other types
		return "", false
	case typ == dns.TypeA:
		m.Answer, m.Truncated, err = plugin.A(ctx, k, zone, state, nil, opt)
	case typ == dns.TypeAAAA:
		m.Answer, m.Truncated, err = plugin.AAAA(ctx, k, zone, state, nil, opt)
	case typ == dns.TypeTXT:
		m.Answer, m.Truncated, err = plugin.TXT(ctx, k, zone, state, nil, opt)
	case typ == dns.TypeCNAME:
		m.Answer, err = plugin.CNAME(ctx, k, zone, state, opt)
	case typ == dns.TypeMX:
		m.Answer, m.Extra, err = plugin.MX(ctx, k, zone, state, opt)
	case typ == dns.TypeSRV:
		m.Answer, m.Extra, err = plugin.SRV(ctx, k, zone, state, opt)
	case typ == dns.TypeNS && len(qname) == len(zone) && !k.multi(zone):
		m.Answer, m.Extra, err = plugin.NS(ctx, k, zone, state, opt)
	default:
		return "", false
	}
	switch {
	case err != nil && !k.IsNameError(err):
		t.Errorf("%s: %v", questionText(qname, typ), err)
	case err != nil && k.Fall.Through(state.Name()):
		return passed, true
	case err != nil:
		m.Rcode = dns.RcodeNameError
	}
	if len(m.Answer) == 0 {
		m.Ns, _ = plugin.SOA(ctx, k, zone, state, opt)
	}
	return describe(m), true
}

func (k *Kubernetes) multi(zone string) bool {
	z, ok := k.zoneOf(request.Request{Zone: zone})
	return ok && z.multicluster
}
