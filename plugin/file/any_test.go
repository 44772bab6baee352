package file

import (
	"context"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Streams of QUIC are streams, though addresses of their clients are those of UDP.
func TestAnyOverStreams(t *testing.T) {
	z, err := Parse(strings.NewReader("@ 60 IN SOA ns h 1 2 3 4 5\nwww 60 IN A 192.0.2.1\nwww 60 IN TXT x\n"), "example.org.", "db", -1)
	if err != nil {
		t.Fatal(err)
	}
	f := File{Zones: Zones{Z: map[string]*Zone{"example.org.": z}, Names: []string{"example.org."}}}
	for _, tc := range []struct {
		server string
		tcp    bool
		want   int
	}{{"dns://127.0.0.1:0", false, 1}, {"dns://127.0.0.1:0", true, 2}, {"quic://127.0.0.1:0", false, 2}, {"https3://127.0.0.1:0", false, 2}} {
		s, err := dnsserver.NewServer(tc.server, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), dnsserver.Key{}, s)
		rec := dnstest.NewRecorder(&test.ResponseWriter{TCP: tc.tcp})
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeANY)
		if _, err := f.ServeDNS(ctx, rec, r); err != nil || len(rec.Msg.Answer) != tc.want {
			t.Errorf("%s, TCP %t: %v, %v", tc.server, tc.tcp, rec.Msg, err)
		}
		answer, _, _, result := z.Lookup(ctx, request.Request{W: rec, Req: r}, "www.example.org.")
		if result != Success || tc.tcp != (len(answer) == 2) && tc.server == "dns://127.0.0.1:0" {
			t.Errorf("Lookup: %v, %d", answer, result)
		}
	}
}
