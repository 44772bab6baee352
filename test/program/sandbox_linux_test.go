package program

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/sockcall/sockcalltest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// inSandbox is the variable of the environment that has the program run in a sandbox.
const inSandbox = "PROGRAM_TEST_SANDBOX"

func init() {
	if os.Getenv(inSandbox) != "" {
		sockcalltest.Refuse(unix.EPERM, true) // the test sees whether it does
	}
}

// A profile of system calls that was made for another server serves us, too.
func TestSandbox(t *testing.T) {
	up, asked := upstream(t)
	t.Setenv(inSandbox, "yes")
	certificate, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	quic := loopback.Addr()
	s := serve(t, strings.NewReplacer("UPSTREAM", up, "forward . QUIC", "forward . quic://"+quic, "QUIC", "quic://.:"+quic[strings.LastIndex(quic, ":")+1:], "FILES", certificate).Replace(`.:PORT {
		bind 127.0.0.1
		hosts {
			192.0.2.2 www.example.org
			fallthrough
		}
		forward . UPSTREAM
	}
	example.net:PORT {
		bind 127.0.0.1
		recurse {
			stub example.net UPSTREAM
		}
	}
	example.com:PORT {
		bind 127.0.0.1
		forward . UPSTREAM {
			force_tcp
		}
	}
	example.edu:PORT {
		bind 127.0.0.1
		forward . QUIC {
			tls FILES/ca.pem
		}
	}
	QUIC {
		bind 127.0.0.1
		tls FILES/cert.pem FILES/key.pem
		whoami
	}`))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil || !strings.Contains(string(status), "Seccomp:\t2") {
		t.Skipf("no filters of system calls: %v", err)
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, name := range []string{"www.example.org.", "www.example.", "www.example.net.", "www.example.com."} {
			if r := s.ask(network, name, dns.TypeA); r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1 {
				t.Errorf("%s over %s: got %v", name, network, r)
			}
		}
	}
	m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
	m.Id = 0
	if r, err := clients.DialQUIC(t, quic).Ask(m); err != nil || r.Rcode != dns.RcodeSuccess {
		t.Errorf("over QUIC: got %v, %v", r, err)
	}
	if r := s.ask("udp", "www.example.edu.", dns.TypeA); r.Rcode != dns.RcodeSuccess || len(r.Extra) == 0 {
		t.Errorf("an upstream of QUIC: got %v", r)
	}
	if asked.Load() < 5 {
		t.Errorf("the upstream was asked %d times", asked.Load())
	}
}
