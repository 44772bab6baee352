package forward

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// lookupInTime is what servers find in the time that a name has.
func lookupInTime(t *testing.T, servers serverResolver) (found, error) {
	ctx, cancel := context.WithTimeout(t.Context(), resolveTimeout)
	defer cancel()
	return servers.lookup(ctx, "dns.example.org")
}

// A query to a resolver that is lost does not keep the server from starting: it is asked once more.
func TestLostQueryToResolver(t *testing.T) {
	var a, aaaa atomic.Int32
	lossy := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m, n := new(dns.Msg).SetReply(r), &aaaa
		if r.Question[0].Qtype == dns.TypeA {
			n, m.Answer = &a, []dns.RR{test.A("dns.example.org. 60 IN A 192.0.2.1")}
		}
		if n.Add(1) > 1 {
			w.WriteMsg(m)
		}
	})
	if f, err := lookupInTime(t, serverResolver{lossy}); err != nil || len(f.addrs) != 1 {
		t.Error(f, err)
	}
}

// Resolvers that are silent leave time for those that come behind.
func TestSilentResolvers(t *testing.T) {
	good := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		if r.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{test.A("dns.example.org. 60 IN A 192.0.2.1")}
		}
		w.WriteMsg(m)
	})
	servers := serverResolver{}
	for range 3 {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		servers = append(servers, c.LocalAddr().String())
	}
	if f, err := lookupInTime(t, append(servers, good)); err != nil || len(f.addrs) != 1 {
		t.Error(f, err)
	}
}

// That neither kind of addresses could be asked for is one line, as all errors at a start and all lines of the log.
func TestErrorOfResolver(t *testing.T) {
	broken := upstream(t, func(w dns.ResponseWriter, r *dns.Msg) { w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeServerFailure)) })
	_, err := lookupInTime(t, serverResolver{broken})
	if want := broken + ": SERVFAIL; " + broken + ": SERVFAIL"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
