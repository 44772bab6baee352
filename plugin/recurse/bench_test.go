package recurse

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"

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
		j, _ := r.beginFor(q, nil)
		if err := j.wait(context.Background()); err != nil || len(j.result.Answer) != 1 {
			b.Fatalf("%+v %v", j.result, err)
		}
	}
}
