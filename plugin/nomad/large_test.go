package nomad

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Of a service with very many instances those records are made that a message has room for.
func TestManyInstances(t *testing.T) {
	a, url := newAPI(t)
	var all []instance
	for i := range 10000 {
		all = append(all, instance{Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Port: 1000 + i})
	}
	all = append(all, all...)
	a.change("default/big", all...)
	n := serving(t, url)
	for _, typ := range []uint16{dns.TypeA, dns.TypeSRV} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		if _, err := n.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("big.default.service.nomad.", typ)); err != nil {
			t.Fatal(err)
		}
		var w wire.Reply
		if err := w.SetMsg(rec.Msg); err != nil {
			t.Fatal(err)
		}
		if b := w.End(wire.EndMsg(rec.Msg, wire.MaxMessage)); len(b) < wire.MaxMessage-64 {
			t.Errorf("%s: a reply of %d octets", dns.TypeToString[typ], len(b))
		}
		if answer, extra := len(rec.Msg.Answer), len(rec.Msg.Extra); answer > 5000 || extra > 5000 {
			t.Errorf("%s: %d records, and %d", dns.TypeToString[typ], answer, extra)
		}
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if _, err := n.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("big.default.service.nomad.", dns.TypeAAAA)); err != nil || len(rec.Msg.Answer) != 0 || rec.Msg.Rcode != dns.RcodeSuccess {
		t.Errorf("AAAA: %v, %v", rec.Msg, err)
	}
}
