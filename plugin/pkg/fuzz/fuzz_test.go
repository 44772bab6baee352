package fuzz_test

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fuzz"

	"github.com/miekg/dns"
)

func TestDo(t *testing.T) {
	served := 0
	h := plugin.HandlerFunc(func(_ context.Context, _ dns.ResponseWriter, r *dns.Msg) (int, error) {
		served++
		return 0, nil
	})
	query, _ := new(dns.Msg).SetQuestion("example.org.", dns.TypeA).Pack()
	reply, _ := new(dns.Msg).SetReply(new(dns.Msg).SetQuestion("example.org.", dns.TypeA)).Pack()
	for _, tc := range []struct {
		name string
		data []byte
		want int
	}{{"query", query, 1}, {"cut short", query[:14], 0}, {"empty", nil, 0}, {"reply", reply, 0}, {"no question", make([]byte, 12), 0}} {
		served = 0
		if got := fuzz.Do(h, tc.data); got != tc.want || served != tc.want {
			t.Errorf("%s: got %d, served %d, want %d", tc.name, got, served, tc.want)
		}
	}
}
