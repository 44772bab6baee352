package test

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestServerAndPorts(t *testing.T) {
	i, udp, tcp := start(t, "example.org:0 {\nwhoami\n}\nexample.net:0 {\nbind 127.0.0.1\nwhoami\n}\n")
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		m := ask(t, network, addr, question("www.example.org.", dns.TypeA))
		if m == nil || m.Rcode != dns.RcodeSuccess || len(m.Extra) != 2 {
			t.Errorf("%s: got %v", network, m)
			continue
		}
		if a, ok := m.Extra[0].(*dns.A); !ok || !a.A.Equal(net.IPv4(127, 0, 0, 1)) {
			t.Errorf("%s: got %v", network, m.Extra[0])
		}
		if name := m.Extra[1].Header().Name; name != "_"+network+".www.example.org." {
			t.Errorf("%s: got %s", network, name)
		}
	}
	udp, tcp = CoreDNSServerPorts(i, 1)
	if !strings.HasPrefix(udp, "127.0.0.1:") || !strings.HasPrefix(tcp, "127.0.0.1:") {
		t.Errorf("second listener at %q %q", udp, tcp)
	}
	if m := ask(t, "udp", udp, question("example.net.", dns.TypeA)); m == nil || m.Rcode != dns.RcodeSuccess {
		t.Errorf("got %v", m)
	}
	if udp, tcp := CoreDNSServerPorts(i, 2); udp != "" || tcp != "" {
		t.Errorf("a listener that is not there is at %q %q", udp, tcp)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	for _, corefile := range []string{".:0 {\nno-such-plugin\n}", ".:0 {\nwhoami\n", ".:0 {\nwhoami x\n}"} {
		i, udp, tcp, err := CoreDNSServerAndPorts(corefile)
		if err == nil || i != nil || udp != "" || tcp != "" {
			t.Errorf("%q: got %v %q %q, %v", corefile, i, udp, tcp, err)
		}
	}
}

func TestStopTwice(t *testing.T) {
	i, err := CoreDNSServer(".:0 {\nwhoami\n}")
	if err != nil {
		t.Fatal(err)
	}
	CoreDNSServerStop(i)
	CoreDNSServerStop(i)
}

func TestInput(t *testing.T) {
	in := NewInput(". {\n}")
	if string(in.Body()) != ". {\n}" || in.Path() == "" || in.ServerType() != "dns" {
		t.Errorf("got %q %q %q", in.Body(), in.Path(), in.ServerType())
	}
}
