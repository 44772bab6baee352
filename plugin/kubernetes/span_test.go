package kubernetes

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

func TestSpans(t *testing.T) {
	k := serving(t, "kubernetes cluster.local in-addr.arpa")
	x := newWireQuery(t, k, "96.10.in-addr.arpa.", dns.TypePTR)
	if outcome := x.run(t.Context()); outcome != wire.Block {
		t.Errorf("the first such question: %v", outcome)
	}
	s, objects, now := &k.shared.spans, storeOf(k), time.Now()
	if _, ok := s.get(objects, store.Inside, now, false); ok {
		t.Error("made on a goroutine that must not wait")
	}
	first, ok := s.get(objects, store.Inside, now, true)
	if !ok || !within(first, netip.MustParsePrefix("10.96.0.0/16")) || within(first, netip.MustParsePrefix("10.95.0.0/16")) || within(first, netip.MustParsePrefix("10.96.66.0/24")) {
		t.Errorf("got %v", first)
	}
	if !within(first, netip.MustParsePrefix("0.0.0.0/0")) || !within(first, netip.MustParsePrefix("fd00::/8")) || within(first, netip.MustParsePrefix("fe00::/8")) {
		t.Errorf("got %v", first)
	}
	put(t, objects, "kind: Service\nmetadata: {name: new, namespace: shop}\nspec: {clusterIP: 10.95.0.1}")
	if outcome := x.run(t.Context()); outcome != wire.Done || x.w.Rcode() != dns.RcodeSuccess {
		t.Errorf("the next one: %v, rcode %d", outcome, x.w.Rcode())
	}
	if soon, ok := s.get(objects, store.Inside, now.Add(spansLast/2), false); !ok || within(soon, netip.MustParsePrefix("10.95.0.0/16")) {
		t.Error("made anew within a second")
	}
	if _, ok := s.get(objects, store.Inside, now.Add(spansLast), false); ok {
		t.Error("made anew on a goroutine that must not wait")
	}
	if later, ok := s.get(objects, store.Inside, now.Add(spansLast), true); !ok || !within(later, netip.MustParsePrefix("10.95.0.0/16")) {
		t.Error("a new address does not show")
	}
	// A namespace that comes brings its service into sight.
	put(t, objects, "kind: Namespace\nmetadata: {name: hidden}")
	if later, ok := s.get(objects, store.Inside, now.Add(3*spansLast), true); !ok || !within(later, netip.MustParsePrefix("10.96.66.0/24")) {
		t.Error("a namespace that came does not show")
	}
	if got := describe(ask(t, k, "66.96.10.in-addr.arpa.", dns.TypePTR)); got[:7] != "NOERROR" {
		t.Errorf("got %s", got)
	}
}

// With ptr_hostname_only a partial name does not exist if none below it does.
func TestSpansOfHostnamesOnly(t *testing.T) {
	for option, want := range map[string]string{"": "NOERROR", "ptr_hostname_only": "NXDOMAIN"} {
		k := configured(t, "kubernetes cluster.local in-addr.arpa {\n"+option+"\n}")
		s := storeOf(k)
		put(t, s, "kind: Namespace\nmetadata: {name: pets}")
		put(t, s, `
kind: EndpointSlice
metadata: {name: one-1, namespace: pets, labels: {kubernetes.io/service-name: one}}
endpoints: [{addresses: [10.78.0.1]}, {addresses: [10.79.0.1], hostname: cat-0}]`)
		s.PutDone()
		for name, want := range map[string]string{"1.0.78.10.in-addr.arpa.": want, "78.10.in-addr.arpa.": want, "79.10.in-addr.arpa.": "NOERROR"} {
			if got, _, _ := strings.Cut(describe(ask(t, k, name, dns.TypePTR)), " "); got != want {
				t.Errorf("%q: %s is %s, want %s", option, name, got, want)
			}
		}
	}
}
