package acl

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"

	"github.com/miekg/dns"
)

// The set holds an address if and only if one of its networks does.
func TestSources(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var networks []netip.Prefix
		for range r.IntN(12) {
			if r.IntN(2) == 0 {
				a := netip.AddrFrom4([4]byte{192, 0, byte(r.IntN(2)), byte(r.IntN(256))})
				networks = append(networks, netip.PrefixFrom(a, 20+r.IntN(13)))
			} else {
				a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(r.IntN(2)), byte(r.IntN(256))})
				networks = append(networks, netip.PrefixFrom(a, 30+r.IntN(30)))
			}
		}
		if round == 0 {
			networks = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("255.255.255.255/32")}
		}
		s := newSources(networks)
		for range 200 {
			a := netip.AddrFrom4([4]byte{192, 0, byte(r.IntN(3)), byte(r.IntN(256))})
			if r.IntN(2) == 0 {
				a = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(r.IntN(3)), byte(r.IntN(256)), byte(r.IntN(256)), 15: byte(r.IntN(256))})
			}
			want := false
			for _, n := range networks {
				want = want || n.Contains(a)
			}
			if got := s.contain(a); got != want {
				t.Fatalf("%v: holds %v: %v", networks, a, got)
			}
		}
	}
	var empty sources
	if empty.contain(netip.MustParseAddr("192.0.2.1")) || empty.contain(netip.Addr{}) {
		t.Error("an empty set holds something")
	}
}

// Lines that were joined decide as they did one by one.
func TestJoined(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	actions, shorter := []action{allow, block, filter, drop}, 0
	for range 500 {
		var lines []policy
		for range r.IntN(12) {
			p := policy{action: actions[r.IntN(2)+r.IntN(3)], sources: sources{all: r.IntN(20) == 0}}
			if r.IntN(3) == 0 {
				p.types = []uint16{uint16(1 + r.IntN(2))}
			}
			if a := netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(64))}); !p.sources.all {
				p.sources = newSources([]netip.Prefix{netip.PrefixFrom(a, 28+r.IntN(5))})
			}
			lines = append(lines, p)
		}
		runs := joined(lines)
		shorter += len(lines) - len(runs)
		for last := range 64 {
			for qtype := range uint16(3) {
				from := netip.AddrFrom4([4]byte{192, 0, 2, byte(last)})
				if got, want := firstOf(runs, from, qtype), firstOf(lines, from, qtype); got != want {
					t.Fatalf("%v of type %d: %v, want %v\n%v", from, qtype, got, want, lines)
				}
			}
		}
	}
	if shorter < 100 {
		t.Errorf("%d lines were joined to others", shorter)
	}
}

// firstOf is the action of the first policy for queries of a type from an address.
func firstOf(all []policy, from netip.Addr, qtype uint16) action {
	for _, p := range all {
		if p.sources.contain(from) && (p.types == nil || slices.Contains(p.types, qtype)) {
			return p.action
		}
	}
	return none
}

func BenchmarkServeWire(b *testing.B) {
	var long strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&long, " 10.%d.%d.0/25", i/256, i%256)
	}
	for name, corefile := range map[string]string{
		"allow":           "acl {\nallow net 192.0.2.0/24\nblock\n}",
		"block":           "acl {\nallow net 198.51.100.0/24\nblock\n}",
		"10,000 networks": "acl {\nblock net" + long.String() + "\n}",
		"10,000 lines":    "acl {" + strings.ReplaceAll(long.String(), " ", "\nblock net ") + "\n}",
	} {
		b.Run(name, func(b *testing.B) {
			q, w := parsed(b, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), "192.0.2.1")
			asked := 0
			var h plugin.WireHandler = serving(b, corefile, source{&asked})
			buf := make([]byte, 512)
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(buf)
				h.ServeWire(b.Context(), w, q)
			}
		})
	}
}
