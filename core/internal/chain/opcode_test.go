package chain

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Opcodes beside QUERY and NOTIFY go to the plugins of those blocks that take them, also where views decide, and get
// NOTIMP elsewhere, which is counted.
func TestOpcodes(t *testing.T) {
	open := blockOf("open.example.org.", named)
	open.Opcodes = 1 << dns.OpcodeUpdate
	closed := blockOf("example.org.", named)
	view, rest := blockOf("view.example.org.", named), blockOf("view.example.org.", named)
	rest.Opcodes = 1 << dns.OpcodeUpdate
	*view.Filters = []FilterFunc{func(_ context.Context, r *request.Request) bool { return r.QType() == dns.TypeSOA }}
	c := build(t, Options{Label: "dns://" + t.Name()}, open, closed, view, rest)
	if got := c.Opcodes(); got != 1<<dns.OpcodeUpdate {
		t.Errorf("opcodes of the listener: %b", got)
	}
	for _, tc := range []struct {
		name          string
		opcode, rcode int
		qtype         uint16
	}{
		{"www.open.example.org.", dns.OpcodeQuery, dns.RcodeNameError, dns.TypeSOA},
		{"www.open.example.org.", dns.OpcodeNotify, dns.RcodeNameError, dns.TypeSOA},
		{"www.open.example.org.", dns.OpcodeUpdate, dns.RcodeNameError, dns.TypeSOA},
		{"www.open.example.org.", dns.OpcodeStatus, dns.RcodeNotImplemented, dns.TypeSOA},
		{"www.example.org.", dns.OpcodeQuery, dns.RcodeNameError, dns.TypeSOA},
		{"www.example.org.", dns.OpcodeNotify, dns.RcodeNameError, dns.TypeSOA},
		{"www.example.org.", dns.OpcodeUpdate, dns.RcodeNotImplemented, dns.TypeSOA},
		{"view.example.org.", dns.OpcodeUpdate, dns.RcodeNotImplemented, dns.TypeSOA},
		{"view.example.org.", dns.OpcodeUpdate, dns.RcodeNameError, dns.TypeA},
		{"example.net.", dns.OpcodeUpdate, dns.RcodeRefused, dns.TypeSOA},
	} {
		counted := func() float64 {
			return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(c.Label, vars.Dropped, "", dns.RcodeToString[tc.rcode], ""))
		}
		before := counted()
		r := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
		r.Opcode = tc.opcode
		w, to := ours()
		c.ServeDNS(t.Context(), w, r)
		if len(to.sent) != 1 || to.sent[0].Rcode != tc.rcode || to.sent[0].Opcode != tc.opcode {
			t.Errorf("%s, opcode %d, type %d: got %v", tc.name, tc.opcode, tc.qtype, to.sent)
		}
		want := 0.0
		if tc.rcode != dns.RcodeNameError {
			want = 1
		}
		if n := counted() - before; n != want {
			t.Errorf("%s, opcode %d: counted %v times", tc.name, tc.opcode, n)
		}
	}
}
