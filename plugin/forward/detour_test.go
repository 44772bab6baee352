package forward

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A validator decides who is asked first and last, whatever the policy, and learns who answered.
func TestDetour(t *testing.T) {
	var addrs []string
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		addrs = append(addrs, upstream(t, says(a)))
	}
	broken := upstream(t, withRcode(dns.RcodeServerFailure))
	for _, policy := range []string{"sequential", "random", "round_robin"} {
		f := configured(t, "forward . "+strings.Join(append(addrs, broken), " ")+" {\npolicy "+policy+"\nfailover SERVFAIL\n}")
		for _, tc := range []struct {
			first string
			last  []string
			want  int
		}{
			{addrs[1], append([]string{addrs[0]}, addrs[2]), 1},
			{"", []string{addrs[0], addrs[1], broken}, 2},
			{"", []string{addrs[1], addrs[2], broken}, 0},
			{broken, []string{addrs[1], addrs[2]}, 0},
			{addrs[2], nil, 2},
			{addrs[2], []string{addrs[0], addrs[2], broken}, 1}, // who is first of all is not asked again
		} {
			for range 5 {
				took := ""
				d := &advice.Detour{First: tc.first, Last: tc.last, Took: func(up string) { took = up }}
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				_, err := f.ServeDNS(advice.WithDetour(t.Context(), d), rec, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
				if err != nil || took != addrs[tc.want] || len(rec.Msg.Answer) != 1 || !strings.HasSuffix(rec.Msg.Answer[0].(*dns.A).A.String(), []string{".1", ".2", ".3"}[tc.want]) {
					t.Errorf("%s, first %q, last %q: %q answered: %v %v", policy, tc.first, tc.last, took, rec.Msg, err)
				}
			}
		}
	}
}
