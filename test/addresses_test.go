package test

import (
	"testing"

	"github.com/miekg/dns"
)

// Servers start with addresses in each of the forms that people write.
func TestAddressesOfUpstreams(t *testing.T) {
	for _, line := range []string{
		"forward . [::1]", "forward . [fe80::1%lo]", "forward . tls://[::1]", "forward . dns:///etc/resolv.conf 192.0.2.1", "forward . 9.9.9.9:",
		"forward . dns://[::1]:", "forward . https://[::1]", "forward . quic://[::1]", "grpc . [::1]", "grpc . dns://[::1]:",
		"secondary example.org {\ntransfer from [::1] [fe80::1%lo]\n}", "transfer example.org {\nto [::1]\n}",
		"erratic example.org",
	} {
		i, _, _, err := CoreDNSServerAndPorts(".:0 {\nbind 127.0.0.1\n" + line + "\n}")
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		CoreDNSServerStop(i)
	}
}

// erratic with zones answers for these only.
func TestErraticZones(t *testing.T) {
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nerratic example.org 10.0.0.0/8 {\ndrop 0\n}\nwhoami\n}")
	for name, want := range map[string]int{"www.Example.org.": 1, "1.10.in-addr.arpa.": 1, "example.net.": 0} {
		if m := ask(t, "udp", udp, question(name, dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) != want {
			t.Errorf("%s: got %v", name, m)
		}
	}
}
