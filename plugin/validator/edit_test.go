package validator

import (
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// editing is the least time that a thread works to make and edit a secure reply with n aliases beside what was asked for. Nothing depends
// on them, so the client gets none.
func editing(t *testing.T, n int) time.Duration {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
	var q wire.Query
	packet, err := m.Pack()
	if err != nil || !q.Parse(packet) {
		t.Fatalf("the query is none for the lane: %v", err)
	}
	m.Response, m.Compress = true, true
	m.Answer = []dns.RR{test.A("www.example. 300 IN A 192.0.2.1")}
	verdict := &validate.Verdict{Finding: validate.Finding{Status: validate.Secure}}
	verdict.Proof = []validate.Proven{{Set: &rrset.Set{Name: rrset.MustName("www.example."), Type: dns.TypeA, TTL: 300}, Most: 300}}
	for i := range n {
		name := fmt.Sprintf("n%d.", i)
		m.Answer = append(m.Answer, test.CNAME(name+" 300 IN CNAME ."))
		verdict.Unasked = append(verdict.Unasked, &rrset.Set{Name: rrset.MustName(name), Type: dns.TypeCNAME})
	}
	v, w := new(Validator), new(wire.Reply)
	return wiretest.Cost(t, func() {
		if err := w.SetMsg(m); err != nil {
			t.Error(err)
			return
		}
		v.edit(w, &q, verdict)
		if got := len(w.Recs()); got != 1 {
			t.Errorf("%d records are handed on, want 1", got)
		}
		w.Reset(nil)
	})
}

// What it costs to edit a reply grows as the reply does: four times the records take about four times as long, and not
// sixteen times.
func TestEditGrowsWithReply(t *testing.T) {
	few, many := editing(t, 800), editing(t, 3200)
	t.Logf("800 records in %v, 3200 in %v", few, many)
	if many > 10*few {
		t.Errorf("800 records were edited in %v, 3200 in %v", few, many)
	}
}
