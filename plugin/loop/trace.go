package loop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// traceTime is how long upstreams are waited for. A loop between two servers takes a few milliseconds.
const traceTime = time.Second

// carrier is an upstream that sends queries back to us.
type carrier struct {
	upstream string
	by       sighted // who hands them to us: the upstream, or the last of those behind it
}

// trace sends each upstream a query for a name of its own, and returns those whose query came back within traceTime, or till ctx ends.
func (l *Loop) trace(ctx context.Context) (all []carrier) {
	ctx, cancel := context.WithTimeout(ctx, traceTime)
	defer cancel()
	upstreams := l.upstreams()
	traces, marks := make(map[string]*sighted), make([]*sighted, len(upstreams))
	names := make([]string, len(upstreams))
	for i := range upstreams {
		names[i], marks[i] = secretName(l.zone), new(sighted)
		traces[names[i]] = marks[i]
	}
	l.Lock()
	l.traces = traces
	l.Unlock()
	var asking sync.WaitGroup
	for i, u := range upstreams {
		asking.Go(func() {
			r := request.Request{Req: new(dns.Msg).SetQuestion(names[i], dns.TypeHINFO)}
			u.Connect(ctx, r, proxy.Options{PreferUDP: true}) // whatever it answers: what counts is what comes by
		})
	}
	asking.Wait()
	l.Lock()
	defer l.Unlock()
	l.traces = nil
	for i, m := range marks {
		if m.seen {
			all = append(all, carrier{upstreams[i].Addr(), *m})
		}
	}
	return all
}

// resolvConf is where addresses of upstreams mostly come from.
const resolvConf = "/etc/resolv.conf"

// tell is a line about the upstreams that carry a loop, as far as that is known.
func (l *Loop) tell(carriers []carrier, file string) string {
	var parts []string
	for _, c := range carriers {
		parts = append(parts, c.upstream+entryOf(c.upstream, file))
	}
	if len(parts) > 0 {
		return "The probe comes back by way of the upstream " + strings.Join(parts, ", and of ")
	}
	if l.upstreams != nil {
		for _, u := range l.upstreams() {
			parts = append(parts, u.Addr()+entryOf(u.Addr(), file))
		}
	}
	if len(parts) == 0 {
		return "Which upstream sent the probe back is not known"
	}
	return "The probe came back from one of the upstreams " + strings.Join(parts, ", ")
}

// entryOf says which line of file, a resolv.conf(5), has an upstream; "" if none has.
func entryOf(upstream, file string) string {
	host, _, err := net.SplitHostPort(upstream)
	if err != nil {
		return ""
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for lines, n := bufio.NewScanner(bytes.NewReader(text)), 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && a == addr {
			return fmt.Sprintf(` ("nameserver %s", line %d of %s)`, words[1], n, file)
		}
	}
	return ""
}
