package kubernetes

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// spelling writes what a name spells, for comparison.
func spelling(n *name) string {
	return fmt.Sprintf("%d pods=%t ns=%s svc=%s end=%s cluster=%s port=%s proto=%s dir=%d topo=%s",
		n.kind, n.pods, n.namespace, n.service, n.endpoint, n.cluster, n.port, n.protocol, n.direction, topologyText(n.topology))
}

// naive parses the words before the zone one by one, from the right, the way one would who has strings.
func naive(words []string, multicluster, zonal bool) string {
	n := name{}
	pop := func() (word []byte) {
		if len(words) > 0 {
			word = []byte(words[len(words)-1])
			words = words[:len(words)-1]
		}
		return word
	}
	if slices.Equal(words, []string{"dns-version"}) {
		n.kind = versionName
		return spelling(&n)
	}
	if slices.Equal(words, []string{"ns", "dns"}) {
		n.kind = serversName
		return spelling(&n)
	}
	switch string(pop()) {
	case "svc":
	case "pod":
		n.pods = true
	default:
		return spelling(&n)
	}
	n.namespace, n.service = pop(), pop()
	switch {
	case n.namespace == nil:
		n.kind = branchName
	case n.service == nil:
		n.kind = spaceName
	case n.pods && len(words) == 0:
		n.kind = podName
	case n.pods:
		return spelling(&name{pods: true})
	default:
		n.kind = serviceName
	}
	bad := func() string { n.kind = noName; return spelling(&n) }
	under := func(w string) bool { return strings.HasPrefix(w, "_") }
	switch {
	case len(words) == 0:
	case len(words) == 1 && multicluster:
		return bad()
	case len(words) == 1:
		n.endpoint = pop()
	case len(words) == 2 && multicluster && (!under(words[0]) || !under(words[1])):
		n.cluster, n.endpoint = pop(), pop()
	case len(words) == 2:
		n.port, n.protocol = []byte(strings.TrimPrefix(words[0], "_")), []byte(strings.TrimPrefix(words[1], "_"))
	case zonal && !multicluster && words[len(words)-1] == "_zone":
		pop()
		switch string(pop()) {
		case "pin":
			n.direction = pin
		case "prefer":
			n.direction = prefer
		default:
			n.kind = noName
		}
		for _, w := range words {
			n.topology = append(append(n.topology, byte(len(w))), w...)
		}
	default:
		return bad()
	}
	return spelling(&n)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"svc", "pod", "ns.dns", "dns-version", "shop.svc", "cart.shop.svc", "x.cart.shop.svc", "_http._tcp.cart.shop.svc",
		"http._tcp.cart.shop.svc", "1-2-3-4.shop.pod", "a.1-2-3-4.shop.pod", "z.a.pin._zone.db.shop.svc", "prefer._zone.db.shop.svc", "a.b.c.cart.shop.svc", "_._.cart.shop.svc", "x"} {
		f.Add(s, false, true)
		f.Add(s, true, false)
	}
	const zone = "cluster.local"
	f.Fuzz(func(t *testing.T, before string, multicluster, zonal bool) {
		if strings.ContainsAny(before, `\`) {
			return
		}
		lower, err := wire.LowerName(before + "." + zone)
		if err != nil {
			return
		}
		words := strings.Split(toLower(before), ".")
		n := parse(lower, len(lower)-len(zone)-2, multicluster, zonal)
		got, want := spelling(&n), naive(words, multicluster, zonal)
		if n.kind == noName && strings.HasPrefix(want, "0 ") {
			return // what else it spells is of no use to anybody
		}
		if got != want {
			t.Errorf("%q, multicluster %t, zonal %t:\n%s, naive\n%s", before, multicluster, zonal, got, want)
		}
	})
}

// toLower is for ASCII alone, as in names.
func toLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

func FuzzDashedAddr(f *testing.F) {
	for _, s := range []string{"10-0-0-1", "10-0-0-256", "fd00--1", "--1", "fd00-1--0", "1-2-3-4-5-6-7-8", "0-0-0-0-0-ffff-c000-201", "1--2--3", "-1-2-3", "1-2-3", "01-2-3-4", "1--2-3-4-5-6-7-8", "a--", "---", "", "1-2-3-4--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, label string) {
		got, ok := dashedAddr([]byte(label))
		want, known := netip.Addr{}, false
		if strings.Trim(label, "0123456789abcdef-") == "" {
			sep := ":"
			if strings.Count(label, "-") == 3 && !strings.Contains(label, "--") {
				sep = "."
			}
			if ip := net.ParseIP(strings.ReplaceAll(label, "-", sep)); ip != nil {
				want, known = netip.AddrFrom16([16]byte(ip.To16())).Unmap(), true
			}
		}
		if ok != known || ok && got != want {
			t.Fatalf("%q: got %v %t, want %v %t", label, got, ok, want, known)
		}
		if !ok {
			return
		}
		text := appendDashed(nil, got)
		if again, ok := dashedAddr(text); !ok || again != got || text[len(text)-1] == '-' || len(text) > maxDashed {
			t.Fatalf("%q is %v, which is written %s", label, got, text)
		}
	})
}

func TestIsTopology(t *testing.T) {
	for _, tc := range []struct {
		labels, zone string
		want         bool
	}{
		{"a", "a", true}, {"a.b", "a.b", true}, {"a", "a.b", false}, {"a.b", "a", false}, {"a.bc", "a.b", false},
		{"a", "b", false}, {"a.b", "ab", false}, {"a", "", false}, {"a.b.c", "a.b.c", true}, {"a.b", "a.b.", false},
	} {
		name := wire.MustName(tc.labels)
		if got := isTopology(name[:len(name)-1], tc.zone); got != tc.want {
			t.Errorf("%s, %s: got %t", tc.labels, tc.zone, got)
		}
	}
}
