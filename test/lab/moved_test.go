package lab

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// operator is who serves a zone below another one: with keys, or with none, at an address.
type operator struct {
	pen  *pen // nil if the zone is not signed
	at   string
	data string // of each name's A record
}

// mover is a zone and the one above it. Who serves it changes.
type mover struct {
	above   *pen // of example.
	current atomic.Pointer[operator]
}

const (
	movedZone = "moved.example."
	aboveAt   = "127.0.0.2"
)

// signedBy adds an RRset, and its signature if there is a pen.
func signedBy(p *pen, section *[]dns.RR, rrs ...dns.RR) {
	if *section = append(*section, rrs...); p != nil {
		*section = append(*section, p.sign(rrs, nil))
	}
}

// served is the handler of an operator who still serves the zone, or refuses to.
func (mv *mover) served(o *operator) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.SetEdns0(1232, true)
		name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
		switch {
		case mv.current.Load() != o:
			m.Rcode = dns.RcodeRefused
		case typ == dns.TypeDNSKEY && name == movedZone && o.pen != nil:
			m.Authoritative = true
			signedBy(o.pen, &m.Answer, o.pen.key)
		case typ == dns.TypeA && name != movedZone:
			m.Authoritative = true
			signedBy(o.pen, &m.Answer, record(name+" 300 IN A "+o.data))
		default:
			m.Authoritative = true
			if signedBy(o.pen, &m.Ns, record(movedZone+" 300 IN SOA a. b. 1 2 3 4 300")); o.pen != nil {
				signedBy(o.pen, &m.Ns, record(name+" 300 IN NSEC \\000."+name+" NS SOA RRSIG NSEC DNSKEY"))
			}
		}
		_ = w.WriteMsg(m)
	}
}

// ServeDNS is the zone above, whose records last for a day.
func (mv *mover) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m, o := new(dns.Msg).SetReply(q), mv.current.Load()
	m.SetEdns0(1232, true)
	name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	tellDS := func(section *[]dns.RR) {
		if o.pen != nil {
			ds := o.pen.key.ToDS(dns.SHA256)
			ds.Hdr.Ttl = 86400
			signedBy(mv.above, section, ds)
			return
		}
		signedBy(mv.above, &m.Ns, record(movedZone+" 86400 IN NSEC z.example. NS RRSIG NSEC"))
	}
	switch {
	case name == "example." && typ == dns.TypeDNSKEY:
		m.Authoritative = true
		signedBy(mv.above, &m.Answer, mv.above.key)
	case name == movedZone && typ == dns.TypeDS:
		if m.Authoritative = true; o.pen == nil {
			signedBy(mv.above, &m.Ns, record("example. 86400 IN SOA a. b. 1 2 3 4 86400"))
		}
		tellDS(&m.Answer)
	case dns.IsSubDomain(movedZone, name):
		m.Ns = append(m.Ns, record(movedZone+" 86400 IN NS ns."+movedZone))
		tellDS(&m.Ns)
		m.Extra = append(m.Extra, record("ns."+movedZone+" 86400 IN A "+o.at))
	default:
		m.Rcode = dns.RcodeRefused
	}
	_ = w.WriteMsg(m)
}

// at serves at port 53 of an address, over UDP and TCP.
func at(t *testing.T, addr string, h dns.Handler) {
	t.Helper()
	p, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*dns.Server{{PacketConn: p, Handler: h}, {Listener: l, Handler: h}} {
		t.Cleanup(func() { _ = d.Shutdown() })
		go func() { _ = d.ActivateAndServe() }()
	}
}

// A zone changes who serves it, with what keys, or that it is signed at all, from one moment to the next; all that was
// told of it before was to last for a day. The next name in it is answered, and as secure as the zone is now.
func TestMoved(t *testing.T) {
	file := clockFile(t)
	if !namespaced(t) {
		return
	}
	one, two := newPen(movedZone), newPen(movedZone)
	mv := &mover{above: newPen("example.")}
	at(t, aboveAt, mv)
	steps := []struct {
		what string
		operator
		want string
	}{
		{"at first", operator{one, "127.0.0.3", "192.0.2.1"}, "NOERROR 1"},
		{"another server", operator{one, "127.0.0.4", "192.0.2.2"}, "NOERROR 1"},
		{"other keys, too", operator{two, "127.0.0.5", "192.0.2.3"}, "NOERROR 1"},
		{"signed no more, elsewhere", operator{nil, "127.0.0.6", "192.0.2.4"}, "NOERROR 0"},
		{"signed again, elsewhere", operator{one, "127.0.0.7", "192.0.2.5"}, "NOERROR 0"}, // until the denial of DS records ends
	}
	for i := range steps {
		at(t, steps[i].at, mv.served(&steps[i].operator))
	}
	mv.current.Store(&steps[0].operator)
	ours := serve(t, 0, fmt.Sprintf(" validator example {\n  anchor %q\n  rfc5011 off\n  signal off\n }\n recurse {\n  stub example %s\n  allow_servers 127.0.0.0/8\n  aggressive off\n }",
		strings.ReplaceAll(mv.above.key.String(), "\t", " "), aboveAt))
	for i := range steps {
		s := &steps[i]
		mv.current.Store(&s.operator)
		if err := os.WriteFile(file, []byte(fmt.Sprint(100*i)), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond) // it is read once a second
		for n := range 3 {
			got, m := said(t, ours, fmt.Sprintf("n%d-%d.%s", i, n, movedZone), dns.TypeA, nil)
			if got != s.want || len(m.Answer) == 0 || m.Answer[0].(*dns.A).A.String() != s.data {
				t.Errorf("%s: %s, want %s from %s:\n%v", s.what, got, s.want, s.data, m)
			}
		}
	}
}
