package lab

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/miekg/dns"
)

// Servers of the zones: resolvers ask the editor, which asks the one that has the zone.
const (
	rootFront     = "127.9.0.1"
	rootBackend   = "127.9.0.2"
	signedFront   = "127.9.1.1"
	signedBackend = "127.9.1.2"
	onlineBackend = "127.9.1.3"
)

// authorities starts all servers of the laboratory.
func (l *signedLab) authorities(t *testing.T) {
	t.Helper()
	for i, addr := range []string{rootBackend, signedBackend} { // named listens at addresses of interfaces only
		tool(t, l.dir, "ip", "addr", "add", addr+"/32", "dev", "lo")
		program(t, "named", "-4", "-f", "-L", filepath.Join(l.dir, fmt.Sprintf("named%d.log", i)), "-c", filepath.Join(l.dir, fmt.Sprintf("named%d.conf", i)))
	}
	if l.online != "" {
		i, err := test.CoreDNSServer(l.online)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { i.ShutdownCallbacks(); test.CoreDNSServerStop(i) })
	}
	for _, front := range []string{rootFront, signedFront} {
		l.front(t, front)
	}
	awaitSigned(t, l, signedFront+":53")
}

// front has the editor listen at an address.
func (l *signedLab) front(t *testing.T, addr string) {
	t.Helper()
	p, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	s, err := net.Listen("tcp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dns.Server{{PacketConn: p}, {Listener: s}} {
		d.Handler = l.editor(d.PacketConn != nil, addr == rootFront)
		t.Cleanup(func() { _ = d.Shutdown() })
		go func() { _ = d.ActivateAndServe() }()
	}
}

// editor hands queries on to the server that has the zone, and changes the replies of zones with such faults.
func (l *signedLab) editor(udp, root bool) dns.Handler {
	zones := map[string]*signedZone{}
	for _, z := range l.zones {
		zones[z.name] = z
	}
	return dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		name := strings.ToLower(q.Question[0].Name)
		labels := dns.SplitDomainName(name)
		z, backend := (*signedZone)(nil), signedBackend
		if len(labels) > 0 {
			z = zones[labels[len(labels)-1]+"."]
		}
		switch {
		case root:
			backend = rootBackend
		case z != nil && z.online() && !z.below(name, q.Question[0].Qtype):
			backend = onlineBackend
		}
		m := fetch(q, backend+":53")
		if m == nil {
			return
		}
		m.Extra = slices.DeleteFunc(m.Extra, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
		opt := q.IsEdns0()
		switch {
		case z == nil || opt == nil || !opt.Do():
		case root && z.fault.root != nil:
			z.fault.root(m)
		case !root && z.fault.reply != nil:
			z.fault.reply(z, dns.Question{Name: name, Qtype: q.Question[0].Qtype}, m)
		}
		size := dns.MinMsgSize
		if opt != nil {
			m.SetEdns0(1232, opt.Do())
			size = max(size, int(opt.UDPSize()))
		}
		m.Id, m.Compress = q.Id, true
		if udp {
			m.Truncate(size)
		}
		_ = w.WriteMsg(m)
	})
}

// below reports whether the zones below a zone have what is asked for.
func (z *signedZone) below(name string, typ uint16) bool {
	for _, sub := range []string{"sec." + z.name, "sub." + z.name} {
		if dns.IsSubDomain(sub, name) {
			return name != sub || typ != dns.TypeDS
		}
	}
	return false
}

// fetch is a server's reply, nil if there is none.
func fetch(q *dns.Msg, server string) *dns.Msg {
	own := new(dns.Msg)
	own.Id, own.Question = dns.Id(), q.Question
	own.SetEdns0(4096, q.IsEdns0() != nil && q.IsEdns0().Do())
	c := dns.Client{Timeout: 3 * time.Second, UDPSize: 4096}
	m, _, err := c.Exchange(own, server)
	if err == nil && m.Truncated {
		c.Net = "tcp"
		m, _, err = c.Exchange(own, server)
	}
	if err != nil {
		return nil
	}
	return m
}
