package recurse

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// quickServer answers each query with one A record, without allocating.
func quickServer(b *testing.B) netip.AddrPort {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	go func() {
		buf, opt := make([]byte, 4096), []byte{0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 0}
		for {
			_, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			buf[2] |= 0x84
			buf[7] = 1
			n := wire.HeaderLen + wire.NameLen(buf[wire.HeaderLen:]) + 4
			reply := append(buf[:n], 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
			_, _ = conn.WriteToUDPAddrPort(append(reply, opt...), from)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// BenchmarkMiss is a name that takes one exchange with a server that is known.
func BenchmarkMiss(b *testing.B) {
	at, zone := quickServer(b), rrset.MustName("example.org.")
	s := defaults()
	s.allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
	s.minimise, s.timeout = iterate.Relaxed, 5*time.Second
	r := s.resolver("bench")
	r.start()
	b.Cleanup(r.stop)
	packet, err := new(dns.Msg).SetQuestion("n00000000.example.org.", dns.TypeA).Pack()
	if err != nil {
		b.Fatal(err)
	}
	q := new(wire.Query)
	client := netip.MustParseAddrPort("192.0.2.1:5353")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		copy(packet[wire.HeaderLen+2:], strconv.Itoa(10000000+i))
		if !q.Parse(packet) {
			b.Fatal("not a query")
		}
		q.Peer.Client = client
		j, _ := r.beginFor(q, nil, nil, unlooked)
		if err := j.wait(context.Background()); err != nil || len(j.result.Answer) != 1 {
			b.Fatalf("%+v %v", j.result, err)
		}
	}
}

// BenchmarkSynthesized is an answer made of records of other names (B4), beside a hit in a cache: it may take twice as
// long and a microsecond.
func BenchmarkSynthesized(b *testing.B) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("bench")}
	r.start()
	b.Cleanup(r.stop)
	now, zone := r.now(), rrset.MustName("example.org.")
	for labels, texts := range map[byte][]string{
		2: {"example.org. 300 IN SOA a. b. 1 2 3 4 300", "example.org. 300 IN NSEC a.example.org. SOA NS RRSIG NSEC"},
		3: {"a.example.org. 300 IN NSEC *.wild.example.org. A RRSIG NSEC", "*.wild.example.org. 300 IN NSEC z.example.org. A RRSIG NSEC", "*.wild.example.org. 300 IN A 192.0.2.1"},
	} {
		for _, text := range texts {
			r.denials.Learn(nil, zone, signed(b, labels, text), now.After(300))
		}
	}
	c := cache.New()
	c.Next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
		a := new(dns.Msg).SetReply(m)
		rr, _ := dns.NewRR(m.Question[0].Name + " 300 IN A 192.0.2.1")
		a.Answer = []dns.RR{rr}
		return 0, w.WriteMsg(a)
	})
	for _, c := range []struct {
		what, name string
		do         bool
		serve      plugin.WireHandler
	}{
		{"hit", "n00000000.example.org.", false, c}, {"nxdomain", "n00000000.example.org.", false, r}, {"wildcard", "n00000000.wild.example.org.", false, r},
		{"nxdomain, DO", "n00000000.example.org.", true, r}, {"wildcard, DO", "n00000000.wild.example.org.", true, r},
	} {
		b.Run(c.what, func(b *testing.B) {
			m := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
			m.SetEdns0(1232, c.do)
			if _, ok := c.serve.(*cache.Cache); ok { // it is to be a hit
				_, _ = c.serve.WireSelf().ServeDNS(context.Background(), &test.ResponseWriter{}, m)
			}
			packet, err := m.Pack()
			if err != nil {
				b.Fatal(err)
			}
			q, w, room := new(wire.Query), new(wire.Reply), make([]byte, 4096)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if c.serve == r {
					copy(packet[wire.HeaderLen+2:], strconv.Itoa(10000000+i%1000000))
				}
				if !q.Parse(packet) {
					b.Fatal("not a query")
				}
				q.Peer.Client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 5353)
				w.Reset(room)
				if c.serve.ServeWire(context.Background(), w, q) != wire.Done {
					b.Fatal("not at once")
				}
				w.Finish(q, 1232)
			}
		})
	}
}

// signed is an RRset that looks signed, with so many labels.
func signed(tb testing.TB, labels byte, text string) *rrset.Set {
	rr, err := dns.NewRR(text)
	if err != nil {
		tb.Fatal(err)
	}
	m := new(dns.Msg).SetQuestion(rr.Header().Name, rr.Header().Rrtype)
	m.Answer = []dns.RR{rr, &dns.RRSIG{
		Hdr: dns.RR_Header{Name: rr.Header().Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: 300}, TypeCovered: rr.Header().Rrtype, OrigTtl: 300,
		Algorithm: 13, Labels: labels, SignerName: "example.org.", Signature: strings.Repeat("AAAA", 21) + "AA==",
	}}
	b, err := m.Pack()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := rrset.Parse(b)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Section[rrset.Answer][0]
}
