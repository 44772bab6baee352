//go:build unix

package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// A process that takes the place of another one leaves it the queries until it has the zones that it fetches, however
// far away their primary is.
func TestUpgradeOfSecondary(t *testing.T) {
	soa, _ := dns.NewRR("example.org. 300 IN SOA ns.example.org. h.example.org. 1 3600 600 86400 300")
	primary := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Authoritative = true
		m.Answer = []dns.RR{soa}
		if r.Question[0].Qtype == dns.TypeAXFR {
			time.Sleep(300 * time.Millisecond)
			a, _ := dns.NewRR("www.example.org. 300 IN A 192.0.2.1")
			m.Answer = []dns.RR{soa, a, soa}
		}
		w.WriteMsg(m)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: primary}
	go s.ActivateAndServe()
	t.Cleanup(func() { s.Shutdown() })

	dir, port := t.TempDir(), loopback.Port()
	corefile := fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\nsecondary {\ntransfer from %s\n}\n}\n", port, l.Addr())
	if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(corefile), 0o600); err != nil {
		t.Fatal(err)
	}
	p := runProgram(t, dir)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	www := func() string {
		m, err := dns.Exchange(question("www.example.org.", dns.TypeA), addr)
		if err != nil {
			return err.Error()
		}
		return brief(m)
	}
	const want = "NOERROR aa | www.example.org. 300 A 192.0.2.1 | "
	eventually.Holds(t, "the zone is there", func() bool { return www() == want })

	stop, asked := make(chan struct{}), make(chan map[string]int)
	go func() {
		got := map[string]int{}
		for {
			select {
			case <-stop:
				asked <- got
				return
			default:
				got[www()]++
				time.Sleep(5 * time.Millisecond)
			}
		}
	}()
	p = p.upgrade(t)
	time.Sleep(50 * time.Millisecond)
	close(stop)
	if got := <-asked; len(got) != 1 || got[want] == 0 {
		t.Errorf("got %v", got)
	}
	p.terminate(t)
}
