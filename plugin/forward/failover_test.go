package forward

import (
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// A reply that lets the next upstream try is the answer after all if nobody else replies.
func TestFailoverToNobody(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		var asked atomic.Int64
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			asked.Add(1)
			w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeNameError))
		})+" "+loopback.Addr()+" {\npolicy sequential\nfailover NXDOMAIN\nmax_fails 0\n}")
		if got := ask(f, "www.example.org."); got != "NXDOMAIN" {
			t.Error(got)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("the first one was asked %d times", n)
		}
	})
}
