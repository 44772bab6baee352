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
	at := regexp.QuoteMeta(dead)
	cause := `read udp [0-9.:]+->` + at + `: read: connection refused`
	resolves := "recurse {\nstub . " + dead + "\nallow_servers 127.0.0.0/8\nspecial off\nqname_minimisation off\n}"
	const details = "errors {\ndetails\n}"
	for _, tc := range []struct{ name, errors, upstream, want string }{
		{"plain", "errors", "forward . " + dead, cause + `\n$`},
		{"udp", details, "forward . " + dead, cause + ` \(upstream ` + at + ` over udp, attempt 2\)\n$`},
		{"tcp", details, "forward . " + dead + " {\nforce_tcp\n}", ` \(upstream ` + at + ` over tcp, attempt 2\)\n$`},
		{"tls", details, "forward . tls://" + dead, ` \(upstream ` + at + ` over tls, attempt 2\)\n$`},
		{"plain grpc", "errors", "grpc . " + dead, `connection refused"\n$`},
		{"grpc", details, "grpc . " + dead, `connection refused" \(upstream ` + at + ` over grpc, attempt 1\)\n$`},
		{"two of grpc", details, "grpc . " + dead + " " + dead, ` \(upstream ` + at + ` over grpc, attempt 2\)\n$`},
		{"plain recurse", "errors", resolves, `connection refused\n$`},
		{"recurse", details, resolves, `connection refused \(upstream ` + at + ` over udp, attempt 1\)\n$`},
	} {
		for _, wire := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/wire=%v", tc.name, wire), func(t *testing.T) {
				defer func(was bool) { dnsserver.WireLane = was }(dnsserver.WireLane)
				dnsserver.WireLane = wire
				out := captureLog(t)
				_, addr, _ := start(t, fmt.Sprintf(".:0 {\nbind 127.0.0.1\n%s\n%s\n}", tc.errors, tc.upstream))
				reply, err := dns.Exchange(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), addr)
				if err != nil || reply.Rcode != dns.RcodeServerFailure {
					t.Fatalf("got %v, %v", reply, err)
				}
				out.Await(t, "2 www.example.org. A: ")
				if !regexp.MustCompile(`2 www\.example\.org\. A: .*` + tc.want).MatchString(out.String()) {
					t.Errorf("logged %q, want %s", out, tc.want)
				}
			})
		}
	}
}
