package msg_test

import (
	"encoding/json"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/etcd/msg"
)

func TestHostType(t *testing.T) {
	for _, tc := range []struct {
		host, text string
		want       uint16
		ip         string
		octets     int
	}{
		{"192.0.2.1", "", dns.TypeA, "192.0.2.1", 4},
		{"192.0.2.1", "text", dns.TypeA, "192.0.2.1", 4},
		{"::ffff:192.0.2.1", "", dns.TypeA, "192.0.2.1", 4},
		{"2001:db8::1", "", dns.TypeAAAA, "2001:db8::1", 16},
		{"www.example.org", "", dns.TypeCNAME, "<nil>", 0},
		{"www.example.org", "text", dns.TypeTXT, "<nil>", 0},
		{"", "text", dns.TypeTXT, "<nil>", 0},
		{"", "", dns.TypeCNAME, "<nil>", 0},
		{"192.0.2.256", "", dns.TypeCNAME, "<nil>", 0},
	} {
		s := msg.Service{Host: tc.host, Text: tc.text}
		what, ip := s.HostType()
		if what != tc.want || ip.String() != tc.ip || len(ip) != tc.octets {
			t.Errorf("%q, %q: got %s, %v of %d octets", tc.host, tc.text, dns.TypeToString[what], ip, len(ip))
		}
	}
}

func TestJSON(t *testing.T) {
	full := msg.Service{
		Host: "192.0.2.1", Port: 80, Priority: 10, Weight: 20, Text: "text", Mail: true, TTL: 30,
		TargetStrip: 1, Group: "g", Key: "/skydns/local/skydns/x",
	}
	b, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"host":"192.0.2.1","port":80,"priority":10,"weight":20,"text":"text","mail":true,"ttl":30,"targetstrip":1,"group":"g"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var back msg.Service
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	full.Key = ""
	if back != full {
		t.Errorf("got %+v", back)
	}
	if b, err := json.Marshal(msg.Service{Key: "x"}); err != nil || string(b) != "{}" {
		t.Errorf("empty: got %s, %v", b, err)
	}
}
