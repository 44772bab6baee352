package test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// With details, the line of a query that failed names the upstream, the transport and the attempt; without, it is as it was.
func TestDetailsOfErrors(t *testing.T) {
	dead := loopback.Addr() // nobody listens there
	cause := `read udp [0-9.:]+->` + regexp.QuoteMeta(dead) + `: read: connection refused`
	for _, tc := range []struct {
		name, errors, forward string
		wire                  bool
		want                  string
	}{
		{"plain", "errors", dead, true, cause + `\n$`},
		{"udp", "errors {\ndetails\n}", dead, true, cause + ` \(upstream ` + regexp.QuoteMeta(dead) + ` over udp, attempt 2\)\n$`},
		{"message lane", "errors {\ndetails\n}", dead, false, cause + ` \(upstream ` + regexp.QuoteMeta(dead) + ` over udp, attempt 2\)\n$`},
		{"tcp", "errors {\ndetails\n}", dead + " {\nforce_tcp\n}", true, ` \(upstream ` + regexp.QuoteMeta(dead) + ` over tcp, attempt 2\)\n$`},
		{"tls", "errors {\ndetails\n}", "tls://" + dead, true, ` \(upstream ` + regexp.QuoteMeta(dead) + ` over tls, attempt 2\)\n$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer func(was bool) { dnsserver.WireLane = was }(dnsserver.WireLane)
			dnsserver.WireLane = tc.wire
			out := captureLog(t)
			_, addr, _ := start(t, fmt.Sprintf(".:0 {\nbind 127.0.0.1\n%s\nforward . %s\n}", tc.errors, tc.forward))
			reply, err := dns.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), addr)
			if err != nil || reply.Rcode != dns.RcodeServerFailure {
				t.Fatalf("got %v, %v", reply, err)
			}
			out.waitFor(t, "2 www.example.org. A: ")
			if !regexp.MustCompile(`2 www\.example\.org\. A: .*` + tc.want).MatchString(out.String()) {
				t.Errorf("logged %q, want %s", out, tc.want)
			}
		})
	}
}
