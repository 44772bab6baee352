package validator

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// sink is a client that only looks.
type sink struct{ test.ResponseWriter }

func (*sink) WriteMsg(*dns.Msg) error { return nil }

// What was validated before costs no signature check; unchecked is the same with CD, which goes through untouched.
func BenchmarkServe(b *testing.B) {
	for name, change := range map[string]func(*dns.Msg){"validated": do, "unchecked": func(m *dns.Msg) { do(m); m.CheckingDisabled = true }} {
		b.Run(name, func(b *testing.B) {
			v, _ := lab(b, "")
			m := new(dns.Msg)
			m.SetQuestion("www.example.", dns.TypeA)
			change(m)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.ServeDNS(context.Background(), &sink{}, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
