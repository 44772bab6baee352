package kubernetes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

func TestTransfer(t *testing.T) {
	k := serving(t, "kubernetes cluster.local in-addr.arpa")
	for _, name := range []string{"in-addr.arpa.", "svc.cluster.local.", "example.org."} {
		if _, err := k.Transfer(name, 0); !errors.Is(err, transfer.ErrNotAuthoritative) {
			t.Errorf("%s: %v", name, err)
		}
	}
	collect := func(serial uint32) (all []string, soa *dns.SOA) {
		t.Helper()
		ch, err := k.Transfer("cluster.local.", serial)
		if err != nil {
			t.Fatal(err)
		}
		for rrs := range ch {
			for _, rr := range rrs {
				if s, ok := rr.(*dns.SOA); ok {
					soa = s
				}
				all = append(all, strings.Join(strings.Fields(rr.String()), " "))
			}
		}
		return all, soa
	}
	all, soa := collect(0)
	if all[0] != all[len(all)-1] || soa == nil {
		t.Fatalf("%q", all)
	}
	for _, want := range []string{
		"cart.shop.svc.cluster.local. 5 IN A 10.96.10.1",
		"cart.shop.svc.cluster.local. 5 IN SRV 0 100 80 cart.shop.svc.cluster.local.",
		"_http._tcp.cart.shop.svc.cluster.local. 5 IN SRV 0 100 80 cart.shop.svc.cluster.local.",
		"db.shop.svc.cluster.local. 5 IN A 10.244.20.1",
		"db-0.db.shop.svc.cluster.local. 5 IN A 10.244.20.1",
		"_sql._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 33 5432 10-244-20-2.db.shop.svc.cluster.local.",
		"_sql._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 5432 fd00-244-1--0.db.shop.svc.cluster.local.",
		"elsewhere.shop.svc.cluster.local. 5 IN CNAME www.example.org.",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(all, "\n"))
		}
	}
	for _, text := range all {
		switch {
		case strings.Contains(text, ".hidden."):
			t.Errorf("of a namespace that is not exposed: %s", text)
		case strings.HasPrefix(text, "dns-version.") || strings.HasPrefix(text, "db.") && strings.Contains(text, " SRV "):
			t.Errorf("is of no service, or of no port: %s", text)
		}
	}
	if n := strings.Count(strings.Join(all, "\n"), " 5432 db-0.db.shop."); n != 1 {
		t.Errorf("an endpoint in several slices has %d SRV records", n)
	}
	rest := slices.Clone(all[1:])
	slices.Sort(rest)
	if len(slices.Compact(rest)) != len(all)-1 {
		t.Error("a record stands twice")
	}
	if all, _ := collect(soa.Serial); len(all) != 1 && soa.Serial != 0 {
		t.Errorf("a client that has the zone gets %d records", len(all))
	}
}
