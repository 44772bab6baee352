package recurse

import (
	"fmt"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"

	"github.com/miekg/dns"
)

// With *debug*, each exchange is a line: for what, whom, and what came of it.

// debug logs the end of x, of which ev tells, for those who wait for it.
func (f *flight) debug(joined []party, x *proxy.Exchange, ev *iterate.Event) {
	if !log.D.Value() {
		return
	}
	via := "udp"
	switch {
	case f.secure:
		via = "tls"
	case f.tcp:
		via = "tcp"
	}
	q := f.key.question
	for _, p := range joined {
		logger.Debugf("%s %s: %s, a server of %s, over %s for %s %s: %s", rrset.Text(p.job.key.name), dns.Type(p.job.key.typ),
			f.server.Addr, rrset.Text(f.key.zone), via, rrset.Text(q.Name), dns.Type(q.Type), outcome(x, ev))
	}
}

// outcome is what came of an exchange.
func outcome(x *proxy.Exchange, ev *iterate.Event) string {
	switch ev.Kind {
	case iterate.Replied:
		m := ev.Reply
		rcode, ok := dns.RcodeToString[m.Rcode]
		if !ok {
			rcode = fmt.Sprintf("RCODE%d", m.Rcode)
		}
		s := m.Section
		return fmt.Sprintf("%s after %s, %d answer, %d authority and %d additional RRsets", rcode, x.RTT.Round(time.Microsecond),
			len(s[rrset.Answer]), len(s[rrset.Authority]), len(s[rrset.Additional]))
	case iterate.TimedOut:
		return "no reply for " + x.Timeout.String()
	}
	return ev.Text
}
