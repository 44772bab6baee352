package recurse

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	tap "github.com/dnstap/golang-dnstap"
	"github.com/miekg/dns"
)

// notebook is told messages, and notes what they say.
type notebook struct {
	mu  sync.Mutex
	all []string
}

func (n *notebook) TapMessage(m *tap.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	times := m.QueryTimeSec != nil && (m.ResponseTimeSec != nil) == (m.GetType() == tap.Message_RESOLVER_RESPONSE)
	n.all = append(n.all, fmt.Sprintf("%s %s %s %s %s times %v query %v reply %v", m.GetType(), m.GetSocketProtocol(), rrset.Text(string(m.QueryZone)),
		net.IP(m.ResponseAddress), m.GetSocketFamily(), times, question(m.QueryMessage), question(m.ResponseMessage)))
}

func question(b []byte) string {
	m := new(dns.Msg)
	if b == nil || m.Unpack(b) != nil {
		return "none"
	}
	return m.Question[0].Name
}

// Each exchange is told to each tap, with its zone and socket; what fails has no reply; who was removed is told no more.
func TestTaps(t *testing.T) {
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if m.Authoritative = true; q.Question[0].Name == "long.example.org." && w.LocalAddr().Network() == "udp" {
			m.Truncated = true
		}
		_ = w.WriteMsg(m)
	})
	servers := []*dns.Server{{PacketConn: p, Handler: answer}, {Listener: l, Handler: answer}}
	for _, s := range servers {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	at := netip.MustParseAddrPort(p.LocalAddr().String())
	zone := rrset.MustName("example.org.")
	r := silent(t, func(s *settings) {
		s.mixCase, s.timeout = false, 5*time.Second
		s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
	})
	full, short := tapped{new(notebook), true}, tapped{new(notebook), false}
	r.taps.change([]tapped{full, short}, nil)
	ask := func(name string) {
		t.Helper()
		j, _ := r.beginFor(queryFrom(t, "192.0.2.1", name), nil, nil, unlooked)
		if err := j.wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	ask("www.example.org.")
	r.taps.change(nil, []tapped{short})
	ask("long.example.org.")
	const query, reply = "RESOLVER_QUERY %s example.org. 127.0.0.1 INET times true query %s reply none", "RESOLVER_RESPONSE %s example.org. 127.0.0.1 INET times true query none reply %s"
	want := func(who string, n *notebook, all ...string) {
		t.Helper()
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Equal(n.all, all) {
			t.Errorf("%s was told\n%q, want\n%q", who, n.all, all)
		}
	}
	want("the one with messages", full.tapper.(*notebook), fmt.Sprintf(query, "UDP", "www.example.org."), fmt.Sprintf(reply, "UDP", "www.example.org."),
		fmt.Sprintf(query, "UDP", "long.example.org."), fmt.Sprintf(reply, "UDP", "long.example.org."),
		fmt.Sprintf(query, "TCP", "long.example.org."), fmt.Sprintf(reply, "TCP", "long.example.org."))
	want("the one without", short.tapper.(*notebook), fmt.Sprintf(query, "UDP", "none"), fmt.Sprintf(reply, "UDP", "none"))
}
