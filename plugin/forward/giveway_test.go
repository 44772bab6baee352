package forward

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// An upstream is not checked for each of the queries that give way: there was a check in each round trip.
func TestChecksInACrowd(t *testing.T) {
	var checks atomic.Int64
	f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		checks.Add(1)
		w.WriteMsg(new(dns.Msg).SetReply(r))
	})+" {\npolicy fastest\n}")
	up := (*f.upstreams.Load())[0]
	now := int64(time.Hour)
	for round := range 3 {
		for i := range 100 {
			if got := f.doubtInCrowd(up, now); got != (i == 0) {
				t.Errorf("round %d, number %d: checks: %t", round, i, got)
			}
		}
		now += int64(checkAgain)
	}
	eventually.Holds(t, "it is checked", func() bool { return checks.Load() > 0 })
}
