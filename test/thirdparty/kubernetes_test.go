package thirdparty

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// cluster is one of a fleet's. It embeds a Kubernetes and decides by itself who its client is.
type cluster struct{ *kubernetes.Kubernetes }

// fleet is several clusters, each configured by a stanza, asked one after the other until one knows.
type fleet struct{ clusters []cluster }

// pods is a connection to the API that is somebody else's: it knows one pod.
type pods struct{ synced *atomic.Bool }

func (p pods) HasSynced() bool                      { return p.synced.Load() }
func (pods) Stop() error                            { return nil }
func (pods) Modified(kubernetes.ModifiedMode) int64 { return 42 }

func (pods) PodIndex(ip string) []*object.Pod {
	if ip != "127.0.0.1" {
		return nil
	}
	return []*object.Pod{{Name: "client", Namespace: "shop", PodIP: ip}}
}

var fleetSynced atomic.Bool

func init() {
	add("fleet", "hosts", func(c *caddy.Controller) error {
		f := new(fleet)
		for c.Next() {
			k, err := kubernetes.ParseStanza(c)
			if err != nil {
				return plugin.Error("fleet", err)
			}
			k.APIConn = pods{&fleetSynced}
			f.clusters = append(f.clusters, cluster{k})
		}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			f.clusters[len(f.clusters)-1].Next = next
			for i := range len(f.clusters) - 1 {
				f.clusters[i].Next = f.clusters[i+1]
			}
			return f
		})
		return nil
	})
}

func (f *fleet) Name() string { return "fleet" }

func (f *fleet) Ready() bool {
	for _, k := range f.clusters {
		if !k.APIConn.HasSynced() {
			return false
		}
	}
	return true
}

func (f *fleet) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f.clusters[0].ServeDNS(ctx, w, r)
}

func (k cluster) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	state := request.Request{W: w, Req: r}
	if plugin.Zones(k.Zones).Matches(state.Name()) != "" && state.QType() == dns.TypeTXT {
		if all := k.APIConn.PodIndex(state.IP()); len(all) == 1 {
			m := new(dns.Msg).SetReply(r)
			m.Answer = []dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: state.QName(), Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{all[0].Namespace, all[0].Name}}}
			return dns.RcodeSuccess, w.WriteMsg(m)
		}
	}
	return k.Kubernetes.ServeDNS(ctx, w, r)
}

func TestFleet(t *testing.T) {
	readiness := loopback.Addr()
	lines := "ready " + readiness + "\nfleet one.local {\nnamespaces shop\nendpoint http://127.0.0.1:1\nfallthrough\n}\n" +
		"fleet two.local {\npods disabled\nendpoint http://127.0.0.1:1\nfallthrough a.svc.two.local\n}\n"
	lines += "hosts {\n192.0.2.7 x.svc.one.local y.a.svc.two.local\n}"
	inBothLanes(t, block(lines), func(t *testing.T, s *server) {
		for _, synced := range []bool{false, true} {
			fleetSynced.Store(synced)
			if status := statusOf(t, "http://"+readiness+"/ready"); (status == http.StatusOK) != synced {
				t.Errorf("synced %t: got %d", synced, status)
			}
		}
		s.expect("x.two.local.", dns.TypeTXT, `NOERROR TXT "shop" "client"`)
		s.expect("web.shop.svc.two.local.", dns.TypeA, "NXDOMAIN ns SOA ns.dns.two.local. hostmaster.two.local. 42 7200 1800 86400 5")
		s.expect("y.a.svc.two.local.", dns.TypeA, "NOERROR A 192.0.2.7")
		s.expect("x.svc.one.local.", dns.TypeA, "NOERROR A 192.0.2.7")
	})
	fleetSynced.Store(false)
}
