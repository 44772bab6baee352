// Package lab is a small Internet on 127.0.0.0/8: a root, top-level domains and zones of its own, some of them with faults,
// served by this server's plugin *file* and by servers that misbehave on purpose. Resolvers are tried out on it; its tests
// compare *recurse* with what is in the zones, and with other people's resolvers where these are installed.
//
//	Build ──▶ Lab: zone files, hints, what each name has ──Start──▶ authorities on 127.9.0.0/16, all on one port
//
// It is for tests, whose process must be allowed nothing but loopback. Start at Build.
package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coredns/coredns/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// A Fault is what is wrong with a zone.
type Fault int

// Faults, in turn.
const (
	None     Fault = iota // two servers, both well
	HalfDead              // nobody listens at one of two addresses
	HalfLame              // one of two servers refuses
	Glueless              // its server's name lies in another zone
	NoEDNS                // its server answers FORMERR to EDNS
	Truncate              // its server answers by TCP only
	AllLame               // no server serves it
	Looping               // its only name is an alias of itself
	Faults
)

// String is the fault in words.
func (f Fault) String() string {
	return [...]string{"none", "one server dead", "one server lame", "without glue", "no EDNS", "TCP only", "all servers lame", "alias of itself"}[f]
}

// Question is a name to be asked for, and what a resolver is to say: a return code, and an address or none.
type Question struct {
	Name  string
	Type  uint16
	Rcode int
	Addr  string
	Zone  string
	Fault Fault
}

// Lab is the zones and servers. It is used by one goroutine.
type Lab struct {
	Dir       string
	Port      int
	Hints     string // file
	Questions []Question

	corefile strings.Builder
	odd      map[string]func(*dns.Msg, bool, string) *dns.Msg // by address
	zones    map[string]*strings.Builder
	server   *caddy.Instance
	others   []*dns.Server
}

const soa = "@ 300 IN SOA ns.lab. x.lab. 1 3600 600 86400 300\n"

// Build makes a lab of so many top-level domains with so many zones each, whose authorities will listen on port. dir
// gets the files.
func Build(dir string, port, tlds, zones int) (*Lab, error) {
	l := &Lab{Dir: dir, Port: port, odd: map[string]func(*dns.Msg, bool, string) *dns.Msg{}, zones: map[string]*strings.Builder{}}
	l.Hints = filepath.Join(dir, "hints")
	root := ". 300 IN SOA ns.lab. x.lab. 1 3600 600 86400 300\n. 86400 IN NS a.root.lab.\na.root.lab. 86400 IN A 127.9.0.1\n"
	if err := os.WriteFile(l.Hints, []byte(". 86400 IN NS a.root.lab.\na.root.lab. 86400 IN A 127.9.0.1\n"), 0o600); err != nil {
		return nil, err
	}
	for i := range tlds {
		tld, at := fmt.Sprintf("t%d", i), fmt.Sprintf("127.9.1.%d", 1+i%200)
		root += fmt.Sprintf("%s. 86400 IN NS ns.nic.%s.\nns.nic.%s. 86400 IN A %s\n", tld, tld, tld, at)
		text := soa + fmt.Sprintf("@ 86400 IN NS ns.nic\nns.nic 86400 IN A %s\n", at)
		for j := range zones {
			text += l.zone(i*zones+j, j, tld)
		}
		l.serve(at, tld+".", text)
	}
	l.serve("127.9.0.1", ".", root)
	return l, l.write()
}

// zone adds one zone and its questions, and returns its delegation.
func (l *Lab) zone(n, j int, tld string) (delegation string) {
	fault := Fault(n % int(Faults))
	label := fmt.Sprintf("z%d", j)
	zone := label + "." + tld + "."
	first, second := fmt.Sprintf("127.9.2.%d", 1+n%250), fmt.Sprintf("127.9.3.%d", 1+n%250)
	text := soa + "@ 3600 IN NS ns1\n@ 3600 IN NS ns2\n"
	text += fmt.Sprintf("ns1 3600 IN A %s\nns2 3600 IN A %s\n", first, second)
	text += fmt.Sprintf("www 300 IN A 192.0.2.%d\n*.wild 300 IN A 192.0.2.250\na.b.c 300 IN A 192.0.2.251\n", 1+n%200)
	text += "alias 300 IN CNAME hop\nhop 300 IN CNAME www\n"
	if n > 0 {
		text += fmt.Sprintf("far 300 IN CNAME www.z%d.%s.\n", max(j-1, 0), tld)
	}
	delegation = fmt.Sprintf("%s 3600 IN NS ns1.%s\n%s 3600 IN NS ns2.%s\nns1.%s 3600 IN A %s\nns2.%s 3600 IN A %s\n", label, label, label, label, label, first, label, second)
	switch fault {
	case HalfDead:
		delegation = strings.Replace(delegation, second, "127.9.255.1", 1)
		l.serve(first, zone, text)
	case HalfLame:
		delegation = strings.Replace(delegation, second, "127.9.0.1", 1) // the root's server has no such zone
		l.serve(first, zone, text)
	case Glueless:
		delegation = fmt.Sprintf("%s 3600 IN NS ns1.z%d.%s.\n", label, j-int(Glueless), tld)
		if j < int(Glueless) {
			delegation = fmt.Sprintf("%s 3600 IN NS ns.nic.%s.\n", label, tld)
			first = ""
		}
		l.glueless(zone, text, j, tld, n)
	case NoEDNS, Truncate:
		at := fmt.Sprintf("127.9.%d.%d", 100+n/250, 1+n%250)
		delegation = fmt.Sprintf("%s 3600 IN NS ns1.%s\nns1.%s 3600 IN A %s\n", label, label, label, at)
		text = strings.Replace(text, "@ 3600 IN NS ns2\n", "", 1)
		l.misbehave(at, zone, text, fault)
	case AllLame:
		delegation = strings.NewReplacer(first, "127.9.0.1", second, "127.9.0.1").Replace(delegation)
	case Looping:
		text = soa + fmt.Sprintf("@ 3600 IN NS ns1\nns1 3600 IN A %s\nwww 300 IN CNAME www\n", first)
		delegation = fmt.Sprintf("%s 3600 IN NS ns1.%s\nns1.%s 3600 IN A %s\n", label, label, label, first)
		l.serve(first, zone, text)
	default:
		l.serve(first, zone, text)
		l.serve(second, zone, text)
	}
	l.ask(zone, fault, n)
	return delegation
}

// glueless serves a zone where its delegation leads: the first server of an earlier zone without faults, or the domain's own.
func (l *Lab) glueless(zone, text string, j int, tld string, n int) {
	text = soa + strings.SplitN(text, "\n", 2)[1]
	if j < int(Glueless) {
		l.serve("127.9.1."+fmt.Sprint(1+tldNumber(tld)%200), zone, text)
		return
	}
	l.serve(fmt.Sprintf("127.9.2.%d", 1+(n-int(Glueless))%250), zone, text)
}

func tldNumber(tld string) (n int) {
	fmt.Sscanf(tld, "t%d", &n)
	return n
}

// ask adds the questions about a zone.
func (l *Lab) ask(zone string, fault Fault, n int) {
	add := func(name string, typ uint16, rcode int, addr string) {
		if fault == AllLame || fault == Looping && name == "www." {
			rcode, addr = dns.RcodeServerFailure, ""
		}
		l.Questions = append(l.Questions, Question{name + zone, typ, rcode, addr, zone, fault})
	}
	www := fmt.Sprintf("192.0.2.%d", 1+n%200)
	add("www.", dns.TypeA, dns.RcodeSuccess, www)
	if fault != Looping {
		add("www.", dns.TypeAAAA, dns.RcodeSuccess, "")
		add("alias.", dns.TypeA, dns.RcodeSuccess, www)
		add("x.wild.", dns.TypeA, dns.RcodeSuccess, "192.0.2.250")
		add("a.b.c.", dns.TypeA, dns.RcodeSuccess, "192.0.2.251")
		add("b.c.", dns.TypeA, dns.RcodeSuccess, "")
	}
	add("no.", dns.TypeA, dns.RcodeNameError, "")
}

// serve has our own server serve a zone at an address.
func (l *Lab) serve(addr, zone, text string) {
	key := addr + " " + zone
	if l.zones[key] == nil {
		l.zones[key] = new(strings.Builder)
		l.zones[key].WriteString(text)
	}
}

// misbehave serves a zone by a server with a fault.
func (l *Lab) misbehave(addr, zone, text string, fault Fault) {
	var rrs []dns.RR
	z := dns.NewZoneParser(strings.NewReader(text), zone, "")
	for rr, ok := z.Next(); ok; rr, ok = z.Next() {
		rrs = append(rrs, rr)
	}
	l.odd[addr] = func(q *dns.Msg, tcp bool, _ string) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		switch {
		case fault == NoEDNS && q.IsEdns0() != nil:
			m.Rcode = dns.RcodeFormatError
			return m
		case fault == Truncate && !tcp:
			m.Truncated = true
			return m
		}
		find(m, rrs, zone)
		if opt := q.IsEdns0(); opt != nil {
			m.SetEdns0(1232, opt.Do())
		}
		return m
	}
}

// find answers from the records of a zone.
func find(m *dns.Msg, rrs []dns.RR, zone string) {
	m.Authoritative = true
	name, typ := strings.ToLower(m.Question[0].Name), m.Question[0].Qtype
	if !dns.IsSubDomain(zone, name) {
		m.Authoritative, m.Rcode = false, dns.RcodeRefused
		return
	}
	for range 8 {
		exists, next := false, ""
		owner := name
		if strings.HasSuffix(name, ".wild."+zone) {
			owner = "*.wild." + zone
		}
		for _, rr := range rrs {
			exists = exists || dns.IsSubDomain(owner, rr.Header().Name)
			if rr.Header().Name != owner {
				continue
			}
			c, alias := rr.(*dns.CNAME)
			if rr.Header().Rrtype == typ || alias {
				rr = dns.Copy(rr)
				rr.Header().Name = name
				if m.Answer = append(m.Answer, rr); alias {
					next = c.Target
				}
			}
		}
		if next == "" || !dns.IsSubDomain(zone, next) {
			if len(m.Answer) == 0 || next == "" && m.Answer[len(m.Answer)-1].Header().Rrtype != typ {
				m.Ns = append(m.Ns, rrs[0])
			}
			if !exists {
				m.Rcode = dns.RcodeNameError
			}
			return
		}
		name = next
	}
}

// write writes the zone files and the Corefile of our authorities.
func (l *Lab) write() error {
	n := 0
	for key, text := range l.zones {
		addr, zone, _ := strings.Cut(key, " ")
		file := filepath.Join(l.Dir, fmt.Sprintf("zone%d", n))
		n++
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(&l.corefile, "%s:%d {\n bind %s\n file %s {\n  reload 0\n }\n}\n", zone, l.Port, addr, file)
	}
	return nil
}

// Start starts the authorities. Stop ends them, also after an error.
func (l *Lab) Start() (err error) {
	if l.server, err = test.CoreDNSServer(l.corefile.String()); err != nil {
		return err
	}
	for addr, answer := range l.odd {
		at := fmt.Sprintf("%s:%d", addr, l.Port)
		p, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		s, err := net.Listen("tcp", at)
		if err != nil {
			p.Close()
			return err
		}
		for _, d := range []*dns.Server{{PacketConn: p}, {Listener: s}} {
			tcp := d.Listener != nil
			d.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
				if m := answer(q, tcp, addr); m != nil {
					_ = w.WriteMsg(m)
				}
			})
			l.others = append(l.others, d)
			go func() { _ = d.ActivateAndServe() }()
		}
	}
	return nil
}

// Stop ends the authorities.
func (l *Lab) Stop() {
	for _, d := range l.others {
		_ = d.Shutdown()
	}
	if l.server != nil {
		test.CoreDNSServerStop(l.server)
	}
}

// Resolver is the block of a resolver for the lab, which listens at a port of 127.0.0.1; more is what else stands in
// the stanza.
func (l *Lab) Resolver(port int, more string) string {
	return fmt.Sprintf(".:%d {\n bind 127.0.0.1\n recurse {\n  hints %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  family ipv4\n%s }\n}\n", port, l.Hints, l.Port, more)
}

// Answer is what a resolver said: return code, and the last address, if there is one.
type Answer struct {
	Rcode int
	Addr  string
	EDE   []uint16
}

// Ask asks a resolver over UDP, and over TCP if need be.
func Ask(resolver, name string, typ uint16) (a Answer, err error) {
	return ask(resolver, new(dns.Msg).SetQuestion(name, typ))
}

func ask(resolver string, q *dns.Msg) (a Answer, err error) {
	q.SetEdns0(1232, false)
	c := dns.Client{Timeout: 12 * time.Second}
	m, _, err := c.Exchange(q, resolver)
	if err != nil {
		return a, err
	}
	a.Rcode = m.Rcode
	for _, rr := range m.Answer {
		if r, ok := rr.(*dns.A); ok {
			a.Addr = r.A.String()
		}
	}
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				a.EDE = append(a.EDE, e.InfoCode)
			}
		}
	}
	return a, nil
}
