package k8s

import (
	"testing"

	"github.com/coredns/coredns/test/clusterbed"
)

const zones = "cluster.local in-addr.arpa ip6.arpa"

func kindsOfServices(t *testing.T, bed *clusterbed.Bed) {
	s := serve(t, bed, zones)
	s.expect(t, [][]string{
		// Two families.
		{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
		{"cart.shop.svc.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:96::a:1"},
		{"1.0.0.0.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.1.0.0.0.0.d.f.ip6.arpa. PTR", "NOERROR", "~ PTR cart.shop.svc.cluster.local."},
		{"single6.shop.svc.cluster.local. A", "NOERROR"},
		{"single6.shop.svc.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:96::a:6"},
		{"node-port.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.5"},
		{"balanced.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.9"},
		// Named ports.
		{"_http._tcp.cart.shop.svc.cluster.local. SRV", "NOERROR", "~ SRV 0 50 80 cart.shop.svc.cluster.local.", "cart.shop.svc.cluster.local. A 10.96.10.1", "cart.shop.svc.cluster.local. AAAA fd00:10:96::a:1"},
		{"_dns._udp.cart.shop.svc.cluster.local. SRV", "NOERROR", "~ SRV 0 50 53 cart.shop.svc.cluster.local.", "cart.shop.svc.cluster.local. A 10.96.10.1", "cart.shop.svc.cluster.local. AAAA fd00:10:96::a:1"},
		{"_dns._tcp.cart.shop.svc.cluster.local. SRV", "NXDOMAIN"},
		{"single4.shop.svc.cluster.local. SRV", "NOERROR", "single4.shop.svc.cluster.local. A 10.96.10.4", "~ SRV 0 100 80 single4.shop.svc.cluster.local."},
		// Endpoints.
		{"10-244-10-1.cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.10.1"},
		{"1.10.244.10.in-addr.arpa. PTR", "NOERROR", "~ PTR 10-244-10-1.cart.shop.svc.cluster.local."},
		// Headless, with a hostname and without.
		{"db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1", "~ A 10.244.20.2"},
		{"db.shop.svc.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:244::14:1"},
		{"db-0.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1"},
		{"10-244-20-2.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.2"},
		{"10-244-20-3.db.shop.svc.cluster.local. A", "NXDOMAIN"}, // not ready
		{"_sql._tcp.db.shop.svc.cluster.local. SRV", "NOERROR",
			"10-244-20-2.db.shop.svc.cluster.local. A 10.244.20.2", "~ SRV 0 25 5432 10-244-20-2.db.shop.svc.cluster.local.", "~ SRV 0 25 5432 db-0.db.shop.svc.cluster.local.",
			"db-0.db.shop.svc.cluster.local. A 10.244.20.1", "db-0.db.shop.svc.cluster.local. AAAA fd00:10:244::14:1"},
		{"1.20.244.10.in-addr.arpa. PTR", "NOERROR", "~ PTR db-0.db.shop.svc.cluster.local."},
		{"db-empty.shop.svc.cluster.local. A", "NXDOMAIN"},
		{"portless.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.9"},
		{"portless.shop.svc.cluster.local. SRV", "NOERROR"},
		// Aliases.
		{"elsewhere.shop.svc.cluster.local. CNAME", "NOERROR", "~ CNAME www.example.org."},
		// What exists without records.
		{"bare.svc.cluster.local. A", "NOERROR"},
		{"nowhere.svc.cluster.local. A", "NXDOMAIN"},
		{"dns-version.cluster.local. TXT", "NOERROR", `~ TXT "1.1.0"`},
	})
}

func pods(t *testing.T, bed *clusterbed.Bed) {
	t.Run("disabled", func(t *testing.T) {
		serve(t, bed, zones).expect(t, [][]string{
			{"10-244-10-1.shop.pod.cluster.local. A", "NXDOMAIN"},
			{"shop.pod.cluster.local. A", "NXDOMAIN"},
		})
	})
	t.Run("insecure", func(t *testing.T) {
		serve(t, bed, zones, "pods insecure").expect(t, [][]string{
			{"10-244-10-1.shop.pod.cluster.local. A", "NOERROR", "~ A 10.244.10.1"},
			{"10-9-9-9.shop.pod.cluster.local. A", "NOERROR", "~ A 10.9.9.9"},
			{"10-9-9-9.nowhere.pod.cluster.local. A", "NXDOMAIN"},
			{"shop.pod.cluster.local. A", "NOERROR"},
		})
	})
	t.Run("verified", func(t *testing.T) {
		serve(t, bed, zones, "pods verified").expect(t, [][]string{
			{"10-244-10-1.shop.pod.cluster.local. A", "NOERROR", "~ A 10.244.10.1"},
			{"fd00-10-244--a-1.shop.pod.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:244::a:1"},
			{"fd00-10-244--6-6.shop.pod.cluster.local. AAAA", "NOERROR", "~ AAAA fd00:10:244::6:6"},
			{"10-244-10-77.shop.pod.cluster.local. A", "NXDOMAIN"}, // finished
			{"10-244-10-1.lab.pod.cluster.local. A", "NXDOMAIN"},
			{"192-0-2-77.lab.pod.cluster.local. A", "NOERROR", "~ A 192.0.2.77"},
			{"10-9-9-9.shop.pod.cluster.local. A", "NXDOMAIN"},
		})
	})
}

func filters(t *testing.T, bed *clusterbed.Bed) {
	onlyShop := [][]string{
		{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
		{"1.10.96.10.in-addr.arpa. PTR", "NOERROR", "~ PTR cart.shop.svc.cluster.local."},
		{"cart.lab.svc.cluster.local. A", "NXDOMAIN"},
		{"lab.svc.cluster.local. A", "NXDOMAIN"},
		{"1.20.96.10.in-addr.arpa. PTR", "NXDOMAIN"},
		{"kubernetes.default.svc.cluster.local. A", "NXDOMAIN"},
	}
	t.Run("namespaces", func(t *testing.T) { serve(t, bed, zones, "namespaces shop").expect(t, onlyShop) })
	t.Run("labels of namespaces", func(t *testing.T) { serve(t, bed, zones, "namespace_labels dns=yes").expect(t, onlyShop) })
	t.Run("labels", func(t *testing.T) {
		serve(t, bed, zones, "labels tier in (front, back)").expect(t, [][]string{
			{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
			{"single4.shop.svc.cluster.local. A", "NXDOMAIN"},
			{"shop.svc.cluster.local. A", "NOERROR"},
		})
	})
	t.Run("empty services", func(t *testing.T) {
		serve(t, bed, zones, "ignore empty_service").expect(t, [][]string{
			{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
			{"single4.shop.svc.cluster.local. A", "NXDOMAIN"},
		})
	})
	t.Run("endpoints", func(t *testing.T) {
		serve(t, bed, zones, "noendpoints").expect(t, [][]string{
			{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"},
			{"db.shop.svc.cluster.local. A", "NXDOMAIN"},
		})
	})
	t.Run("names of pods", func(t *testing.T) {
		serve(t, bed, zones, "endpoint_pod_names").expect(t, [][]string{
			{"cart-1.cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.10.1"},
			{"2.20.244.10.in-addr.arpa. PTR", "NOERROR", "~ PTR db-1.db.shop.svc.cluster.local."},
		})
	})
}

func zonal(t *testing.T, bed *clusterbed.Bed) {
	serve(t, bed, zones, "zonal").expect(t, [][]string{
		{"zone-a.pin._zone.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1"},
		{"zone-b.pin._zone.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.2"},
		{"zone-c.pin._zone.db.shop.svc.cluster.local. A", "NOERROR"},
		{"zone-c.prefer._zone.db.shop.svc.cluster.local. A", "NOERROR", "~ A 10.244.20.1", "~ A 10.244.20.2"},
		{"zone-a.pin._zone.cart.shop.svc.cluster.local. A", "NXDOMAIN"},
	})
}

// clients reaches the API in the other ways there are: with TLS files, and with limits.
func clients(t *testing.T, bed *clusterbed.Bed) {
	s := serveBlock(t, "kubernetes "+zones+" {\nendpoint "+bed.URL+"\ntls "+bed.CertFile+" "+bed.KeyFile+" "+bed.CAFile+
		"\napiserver_qps 50\napiserver_burst 100\napiserver_max_inflight 1\nstartup_timeout 30s\n}")
	s.expect(t, [][]string{{"cart.shop.svc.cluster.local. A", "NOERROR", "~ A 10.96.10.1"}})
	if got := s.isReady(); got != "200 OK" {
		t.Errorf("/ready: %s", got)
	}
}
