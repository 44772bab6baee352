package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
)

// Names that stay inside are answered below validator, too: nobody has signed them, and nobody is asked whether somebody has.
func TestNamesInsideAreNotValidated(t *testing.T) {
	hints := filepath.Join(t.TempDir(), "hints")
	if err := os.WriteFile(hints, []byte(". 300 IN NS ns.example.\nns.example. 300 IN A 127.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, corp, _ := start(t, `corp.home.arpa:0 {
		bind 127.0.0.1
		template IN A {
			answer "{{ .Name }} 60 IN A 192.0.2.1"
		}
	}`)
	_, port, _ := net.SplitHostPort(corp)
	_, udp, _ := start(t, fmt.Sprintf(`.:0 {
		bind 127.0.0.1
		validator
		recurse {
			hints %s
			stub corp.home.arpa 127.0.0.1
			authority_port %s
			allow_servers 127.0.0.1
		}
	}`, hints, port))
	for _, tc := range []struct {
		name    string
		qtype   uint16
		rcode   int
		answers int
	}{
		{"localhost.", dns.TypeA, dns.RcodeSuccess, 1},
		{"x.onion.", dns.TypeA, dns.RcodeNameError, 0},
		{"home.arpa.", dns.TypeDS, dns.RcodeServerFailure, 0}, // its parent's to say, which cannot be asked here
		{"1.0.0.10.in-addr.arpa.", dns.TypePTR, dns.RcodeNameError, 0},
		{"www.corp.home.arpa.", dns.TypeA, dns.RcodeSuccess, 1},
		{"corp.home.arpa.", dns.TypeDS, dns.RcodeSuccess, 0},
		{"www.home.arpa.", dns.TypeA, dns.RcodeNameError, 0},
	} {
		q := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		q.SetEdns0(1232, true)
		m := ask(t, "udp", udp, q)
		if m == nil || m.Rcode != tc.rcode || len(m.Answer) != tc.answers || m.AuthenticatedData {
			t.Errorf("%s %d: %v", tc.name, tc.qtype, m)
		}
	}
}
