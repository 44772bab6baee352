package k8s

import (
	"net"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/test/clusterbed"

	"github.com/miekg/dns"
)

// stub is a resolver as the C libraries in pods have it, with the resolv.conf that a kubelet writes: three search
// domains and ndots:5. It asks for A and AAAA at the same time from one socket.
type stub struct {
	conn   net.Conn
	search []string
	asked  int // names
}

const ndots = 5

func newStub(t *testing.T, addr, namespace string) *stub {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &stub{conn: conn, search: []string{namespace + ".svc.cluster.local.", "svc.cluster.local.", "cluster.local."}}
}

// resolve returns the addresses of a name, sorted. It is "" if there are none.
func (s *stub) resolve(t *testing.T, name string) string {
	t.Helper()
	s.asked = 0
	var tries []string
	for _, domain := range s.search {
		tries = append(tries, name+"."+domain)
	}
	switch {
	case strings.HasSuffix(name, "."):
		tries = []string{name}
	case strings.Count(name, ".") >= ndots:
		tries = append([]string{name + "."}, tries...)
	default:
		tries = append(tries, name+".")
	}
	for _, qname := range tries {
		if addrs := s.both(t, qname); len(addrs) > 0 {
			sort.Strings(addrs)
			return strings.Join(addrs, " ")
		}
	}
	return ""
}

// both asks for both families and waits for both answers, in whatever order they come.
func (s *stub) both(t *testing.T, qname string) (addrs []string) {
	t.Helper()
	s.asked++
	open := map[uint16]uint16{}
	for i, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m := new(dns.Msg).SetQuestion(qname, typ)
		m.Id = uint16(2*s.asked + i)
		open[m.Id] = typ
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.conn.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 4096)
	s.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	for len(open) > 0 {
		n, err := s.conn.Read(buf)
		if err != nil {
			t.Fatalf("%s: %v", qname, err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(buf[:n]); err != nil {
			t.Fatal(err)
		}
		typ, ok := open[m.Id]
		if !ok || m.Question[0].Name != qname || m.Question[0].Qtype != typ {
			t.Fatalf("%s: a reply to something else: %v", qname, m)
		}
		if m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError {
			t.Fatalf("%s: %s", qname, dns.RcodeToString[m.Rcode])
		}
		delete(open, m.Id)
		for _, rr := range m.Answer {
			switch rr := rr.(type) {
			case *dns.A:
				addrs = append(addrs, rr.A.String())
			case *dns.AAAA:
				addrs = append(addrs, rr.AAAA.String())
			}
		}
	}
	return addrs
}

func podQueries(t *testing.T, bed *clusterbed.Bed) {
	s := newStub(t, stock(t, bed).udp, "shop")
	for _, tc := range []struct {
		name, want string
		asked      int // names that were asked for
	}{
		{"cart", "10.96.10.1 fd00:10:96::a:1", 1},
		{"cart.lab", "10.96.20.1", 2},
		{"cart.lab.svc", "10.96.20.1", 3},
		{"cart.lab.svc.cluster.local", "10.96.20.1", 4},
		{"cart.lab.svc.cluster.local.", "10.96.20.1", 1},
		{"db", "10.244.20.1 10.244.20.2 fd00:10:244::14:1", 1},
		{"db-0.db", "10.244.20.1 fd00:10:244::14:1", 1},
		{"10-244-20-2.db.shop.svc.cluster.local", "10.244.20.2", 1}, // five dots: first as it is
		{"elsewhere", "192.0.2.80", 1},
		{"www.example.org", "192.0.2.80", 4},
		{"www.example.org.", "192.0.2.80", 1},
		{"nothing", "", 4},
		{"nothing.example.org", "", 4},
		{"kubernetes.default", "10.96.0.1", 2},
	} {
		for range 2 {
			if got := s.resolve(t, tc.name); got != tc.want || s.asked != tc.asked {
				t.Errorf("%s: got %q after %d names, want %q after %d", tc.name, got, s.asked, tc.want, tc.asked)
			}
		}
	}
}
