package forward

import (
	"encoding/hex"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Records that miekg/dns misreads, or writes otherwise, are passed on as the upstream has them, in both lanes.
func TestMisreadRecords(t *testing.T) {
	const relay, named, next = "0a81c0000201", "0a830572656c6179036e657400", "01620378797a004001"
	for _, tc := range []struct {
		typ  uint16
		data string
	}{{dns.TypeISDN, "023132"}, {dns.TypeAMTRELAY, relay}, {dns.TypeAMTRELAY, named}, {dns.TypeNXT, next}} {
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			m := new(dns.Msg).SetReply(r)
			m.Answer = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: tc.typ, Class: dns.ClassINET, Ttl: 60}, Rdata: tc.data}}
			w.WriteMsg(m)
		}))
		r := new(dns.Msg).SetQuestion("a.example.org.", tc.typ)
		reply, rcode, _, err := packetWire(t, f, client, r)
		if err != nil || len(reply) < len(tc.data)/2 {
			t.Errorf("%s: %d, %v", dns.Type(tc.typ), rcode, err)
			continue
		}
		if got := hex.EncodeToString(reply[len(reply)-len(tc.data)/2:]); got != tc.data {
			t.Errorf("%s: data %s are passed on as %s", dns.Type(tc.typ), tc.data, got)
		}
		if tc.typ == dns.TypeISDN {
			continue // a message has fields for it
		}
		m, rcode, err := serve(f, &test.ResponseWriter{}, r)
		if err != nil || rcode != 0 || len(m.Answer) != 1 {
			t.Errorf("%s: %d, %v, %v", dns.Type(tc.typ), rcode, err, m)
			continue
		}
		if rr, ok := m.Answer[0].(*dns.RFC3597); !ok || rr.Rdata != tc.data || rr.Hdr.Rrtype != tc.typ {
			t.Errorf("%s: data %s are passed on as %v", dns.Type(tc.typ), tc.data, m.Answer[0])
		}
	}
}
