package wire_test

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/miekg/dns"
)

// TestAnswers follows aliases in short answers and, beside records that do not matter, in long ones, which are looked
// up otherwise.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		qtype   uint16
		records []string
		want    bool
	}{
		{"a.", dns.TypeA, []string{"a. 1 IN A 192.0.2.1"}, true},
		{"A.", dns.TypeA, []string{"b. 1 IN TXT x", "a. 1 IN A 192.0.2.1"}, true},
		{"a.", dns.TypeA, []string{"b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN AAAA 2001:db8::1"}, false},
		{"a.", dns.TypeANY, []string{"a. 1 IN TXT x"}, true},
		{"a.", dns.TypeA, []string{"b. 1 IN A 192.0.2.1", "a. 1 IN CNAME B."}, true},
		{"a.", dns.TypeA, []string{"c. 1 IN A 192.0.2.1", "b. 1 IN CNAME C.", "a. 1 IN CNAME b."}, true},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "b. 1 IN CNAME a."}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME a."}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "a. 1 IN CNAME c.", "b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "a. 1 IN A 192.0.2.1", "a. 1 IN CNAME c."}, true},
		{"a.", dns.TypeA, []string{"a. 1 IN CNAME b.", "a. 2 IN CNAME B.", "b. 1 IN A 192.0.2.1"}, true},
		{"a.", dns.TypeCNAME, []string{"a. 1 IN CNAME b."}, true},
		{"a.", dns.TypeCNAME, []string{"a. 1 IN CNAME b.", "a. 1 IN CNAME c."}, false},
		{"x.a.", dns.TypeA, []string{"a. 1 IN DNAME b.", "x.b. 1 IN A 192.0.2.1"}, false},
		{"a.", dns.TypeTXT, []string{"a. 1 CH TXT x"}, false},
		{"a.", dns.TypeA, nil, false},
	} {
		for _, others := range []int{0, 1, 20, 300} {
			m := new(dns.Msg).SetQuestion(tc.name, tc.qtype)
			for i := range others {
				m.Answer = append(m.Answer, rr(t, fmt.Sprintf("n%d. 1 IN CNAME n%d.", i, i+1)))
			}
			for _, s := range tc.records {
				m.Answer = append(m.Answer, rr(t, s))
			}
			var q wire.Query
			if err := q.SetMsg(m, wire.Peer{}); err != nil {
				t.Fatal(err)
			}
			var w wire.Reply
			w.Reset(nil)
			if err := w.SetMsg(m); err != nil {
				t.Fatal(err)
			}
			if got := w.Answers(&q); got != tc.want {
				t.Errorf("%s %d %q beside %d others: got %v", tc.name, tc.qtype, tc.records, others, got)
			}
		}
	}
}

func TestAnswersCost(t *testing.T) {
	w := new(wire.Reply)
	wiretest.Compare(t, 2, func(t *testing.T, r *wiretest.Reply) {
		var q wire.Query
		q.Parse(r.Query())
		w.Reset(nil)
		w.LoadMessage(&q, r.Message)
		w.Answers(&q)
	})
}

func rr(t testing.TB, text string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}
