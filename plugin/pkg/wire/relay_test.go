package wire

import (
	"testing"

	"github.com/miekg/dns"
)

// A reply with AMTRELAY records that leave discovery open, which miekg/dns does not read, becomes a message all the
// same, and that one a reply again.
func TestMsgOfOpenRelays(t *testing.T) {
	relay := func(data string) dns.RR {
		return &dns.RFC3597{Hdr: dns.RR_Header{Name: "a.example.org.", Rrtype: dns.TypeAMTRELAY, Class: dns.ClassINET, Ttl: 60}, Rdata: data}
	}
	r := new(dns.Msg).SetQuestion("a.example.org.", dns.TypeAMTRELAY)
	from := new(dns.Msg).SetReply(r)
	ns, err := dns.NewRR("example.org. 60 IN NS ns.example.org.")
	if err != nil {
		t.Fatal(err)
	}
	const open, named, closed = "0a81c0000201", "0a830572656c6179036e657400", "0a01c0000202"
	from.Answer, from.Ns, from.Extra = []dns.RR{relay(open), relay(closed)}, []dns.RR{ns}, []dns.RR{relay(named)}
	var w Reply
	w.Reset(nil)
	if err := w.SetMsg(from); err != nil {
		t.Fatal(err)
	}
	before := string(w.Bytes())
	m, err := w.Msg(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Answer) != 2 || len(m.Ns) != 1 || len(m.Extra) != 1 {
		t.Fatalf("got %v", m)
	}
	for i, rr := range []dns.RR{m.Answer[0], m.Extra[0]} {
		got, ok := rr.(*dns.RFC3597)
		if want := []string{open, named}[i]; !ok || got.Rdata != want || got.Hdr.Rrtype != dns.TypeAMTRELAY || got.Hdr.Ttl != 60 {
			t.Errorf("got %T %v, want data %s", rr, rr, want)
		}
	}
	var again Reply
	again.Reset(nil)
	if err := again.SetMsg(m); err != nil {
		t.Fatal(err)
	}
	for i := range w.Recs() {
		if got, want := string(again.RData(i)), string(w.RData(i)); got != want || again.Recs()[i].Type != w.Recs()[i].Type {
			t.Errorf("record %d: got %x, want %x", i, got, want)
		}
	}
	if got := string(w.Bytes()); got[HeaderLen:] != before[HeaderLen:] {
		t.Error("the reply is another one now")
	}
	w.buf[w.recs[2].TTL+5]++ // a length that does not fit
	if m, err := w.Msg(r); err == nil {
		t.Errorf("what is no message is %v", m)
	}
}
