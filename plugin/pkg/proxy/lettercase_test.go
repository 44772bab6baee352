package proxy

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The upstream sees random letters, and who asked sees its own: in the question, and in owners whether compressed or
// not.
func TestRandomCase(t *testing.T) {
	const name = "www.some-LONG-name.with-Many-letters.example.org."
	var mu sync.Mutex
	seen := map[string]bool{}
	for _, compress := range []bool{true, false} {
		addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
			r := new(dns.Msg)
			r.Unpack(q)
			mu.Lock()
			seen[r.Question[0].Name] = true
			mu.Unlock()
			m := new(dns.Msg).SetReply(r)
			m.Compress = compress
			for _, owner := range []string{r.Question[0].Name, "ns.Example.org."} {
				rr, _ := dns.NewRR(owner + " 60 IN A 192.0.2.1")
				m.Answer = append(m.Answer, rr)
			}
			b, _ := m.Pack()
			send(b)
		})
		p := proxyTo(t, addr, transport.DNS)
		p.RandomizeCase()
		for range 50 {
			m, err := ask(p, name, Options{})
			if err != nil || m.Question[0].Name != name || m.Answer[0].Header().Name != name || !strings.EqualFold(m.Answer[1].Header().Name, "ns.example.org.") {
				t.Fatalf("compressed %v: %v %v", compress, m, err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 100 {
		t.Errorf("of 100 spellings %d differ", len(seen))
	}
	for s := range seen {
		if !strings.EqualFold(s, name) {
			t.Errorf("%s became %s", name, s)
		}
	}
}

func TestOtherCaseIsIgnored(t *testing.T) {
	addr := udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		forged := replyTo(q)
		for i := 13; forged[i] != 0; i++ {
			if c := forged[i]; c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
				forged[i] ^= 0x20
				break
			}
		}
		forged[len(forged)-1] = 66
		send(forged)
		send(replyTo(q))
	})
	p := proxyTo(t, addr, transport.DNS)
	p.RandomizeCase()
	m, err := ask(p, "www.example.org.", Options{})
	if err != nil || m.Answer[0].(*dns.A).A.String() != "192.0.2.1" {
		t.Fatal(m, err)
	}
	if n := testutil.ToFloat64(repliesIgnored.WithLabelValues("test", addr, "case")); n != 1 {
		t.Errorf("%v are counted", n)
	}
}

// With cookies, and over TCP, where nobody else can answer, names arrive well, too.
func TestRandomCaseAndOtherThings(t *testing.T) {
	p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		c, rcode := cookieOf(t, q), 0
		if len(c) == 16 {
			rcode = dns.RcodeBadCookie
		}
		send(withCookie(t, q, rcode, c[:16]+serverCookie))
	}), transport.DNS)
	p.RandomizeCase()
	for range 20 {
		reply, _, err := askWithCookie(t, p, 0) // compares the owner's query
		m := new(dns.Msg)
		if err != nil || m.Unpack(reply) != nil || m.Question[0].Name != "www.example.org." {
			t.Fatal(m, err)
		}
	}
	tcp := proxyTo(t, tcpUpstream(t, echo), transport.DNS)
	tcp.RandomizeCase()
	if m, err := ask(tcp, "www.example.org.", Options{ForceTCP: true}); err != nil || m.Question[0].Name != "www.example.org." {
		t.Error(m, err)
	}
}

func TestFlipsAreUndone(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, name := range []string{".", "a.", strings.Repeat("aZ-0.", 50), "\\000\\@[.example.org."} {
		b := packed.Message(t, name, dns.TypeA)
		mixed := append([]byte(nil), b...)
		var f replies.Flips
		f.Mix(mixed, random)
		var m dns.Msg
		if err := m.Unpack(mixed); err != nil || !strings.EqualFold(m.Question[0].Name, name) {
			t.Errorf("%s became %s, %v", name, m.Question[0].Name, err)
		}
		if f.Undo(mixed[12:]); string(mixed) != string(b) {
			t.Errorf("%x became %x", b, mixed)
		}
	}
}
