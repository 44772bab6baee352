package msg_test

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/etcd/msg"
)

func TestRecords(t *testing.T) {
	s := &msg.Service{Host: "host.example.org", Port: 8080, Priority: 10, Weight: 7, Text: "text", TTL: 300}
	stripped := &msg.Service{Host: "a.b.example.org", TargetStrip: 2, TTL: 300}
	tooMuch := &msg.Service{Host: "a.b", TargetStrip: 2}
	large := &msg.Service{Host: "a", Port: -1, Priority: 65536 + 5}
	const name = "x.example.org."
	for _, tc := range []struct {
		rr   dns.RR
		want string
	}{
		{s.NewA(name, net.IPv4(192, 0, 2, 1)), "x.example.org. 300 IN A 192.0.2.1"},
		{s.NewAAAA(name, net.ParseIP("2001:db8::1")), "x.example.org. 300 IN AAAA 2001:db8::1"},
		{s.NewCNAME(name, "y.example.org"), "x.example.org. 300 IN CNAME y.example.org."},
		{s.NewMX(name), "x.example.org. 300 IN MX 10 host.example.org."},
		{s.NewNS(name), "x.example.org. 300 IN NS host.example.org."},
		{s.NewPTR(name, "y.example.org."), "x.example.org. 300 IN PTR y.example.org."},
		{s.NewSRV(name, 50), "x.example.org. 300 IN SRV 10 50 8080 host.example.org."},
		{s.NewTXT(name), `x.example.org. 300 IN TXT "text"`},
		{stripped.NewSRV(name, 1), "x.example.org. 300 IN SRV 0 1 0 example.org."},
		{stripped.NewMX(name), "x.example.org. 300 IN MX 0 example.org."},
		{stripped.NewNS(name), "x.example.org. 300 IN NS example.org."},
		{stripped.NewCNAME(name, stripped.Host), "x.example.org. 300 IN CNAME a.b.example.org."},
		{tooMuch.NewNS(name), "x.example.org. 0 IN NS a.b."},
		{large.NewSRV(name, 1), "x.example.org. 0 IN SRV 5 1 65535 a."},
	} {
		if got := strings.Join(strings.Fields(tc.rr.String()), " "); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestNewTXTCutsText(t *testing.T) {
	for length, want := range map[int][]int{
		0:   {0},
		1:   {1},
		254: {254},
		255: {255},
		256: {255, 1},
		510: {255, 255},
		600: {255, 255, 90},
	} {
		s := msg.Service{Text: strings.Repeat("t", length)}
		txt := s.NewTXT("x.example.org.").Txt
		if strings.Join(txt, "") != s.Text || len(txt) != len(want) {
			t.Errorf("%d octets: got %q", length, txt)
			continue
		}
		for i := range want {
			if len(txt[i]) != want[i] {
				t.Errorf("%d octets: string %d has %d octets, want %d", length, i, len(txt[i]), want[i])
			}
		}
	}
}
