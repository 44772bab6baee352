package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// Clients that do not desire recursion get what is kept, validated, else a referral where snoop allows that, also
// from a validator above (R54): a referral says nothing of the name that could be proven.
func TestSnoopAboveValidator(t *testing.T) {
	l, err := Build(t.TempDir(), loopback.Port(), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	rrs, ds := signedRoot(t, l)
	startWithRoot(t, l, rrs)
	validator := fmt.Sprintf(" validator {\n  anchor %q\n  signal off\n }\n", strings.ReplaceAll(ds, "\t", " "))
	block := fmt.Sprintf("%s recurse {\n  hints %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  family ipv4\n  snoop\n", validator, l.Hints, l.Port)
	for i, above := range []string{"", " cache\n"} {
		ours := serve(t, 0, fmt.Sprintf("%s%s  timeout %ds\n }", above, block, 4+i)) // else they would share what they keep
		cold := func(m *dns.Msg) { m.RecursionDesired = false }
		for _, c := range []struct {
			name   string
			change func(*dns.Msg)
			want   string
			ns     string // in the authority section
		}{
			{"www.z0.t1.", cold, "NOERROR 0", "."}, {"no.such.", nil, "NXDOMAIN 1", ""}, {"no.such.", cold, "NXDOMAIN 1", ""},
			{"www.z0.t1.", nil, "NOERROR 0", ""}, {"other.t1.", cold, "NOERROR 0", "t1."}, {"www.z0.t1.", cold, "NOERROR 0", ""},
		} {
			got, m := said(t, ours, c.name, dns.TypeA, c.change)
			ns := ""
			for _, rr := range m.Ns {
				if rr.Header().Rrtype == dns.TypeNS {
					ns = rr.Header().Name
				}
			}
			if got != c.want || ns != c.ns || m.Authoritative {
				t.Errorf("%q %s, RD %v: %s, NS of %q, AA %v; want %s, %q", above, c.name, m.RecursionDesired, got, ns, m.Authoritative, c.want, c.ns)
			}
		}
	}
}
