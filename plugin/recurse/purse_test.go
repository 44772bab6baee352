package recurse

import (
	"context"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	pb "github.com/prometheus/client_model/go"
)

// counted is how many client queries the metrics of a resolver tell of: those that took queries, and those that took none.
func counted(t *testing.T, r *resolver) (asked uint64, kept float64) {
	t.Helper()
	var per, answers pb.Metric
	if r.counts.per.(prometheus.Histogram).Write(&per) != nil || r.counts.answers.Write(&answers) != nil {
		t.Fatal("no metrics")
	}
	return per.Histogram.GetSampleCount(), answers.Counter.GetValue()
}

// What a validator asks for is paid from one purse, and when that is empty it gets what is kept and no more. What it asks
// for its own sake is no client's query, and not counted as one.
func TestPurse(t *testing.T) {
	s := startSlow(t, time.Millisecond)
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver(t, func(c *settings) { c.budget.Queries = 2 })}
	var purse advice.Purse
	began, keptBefore := counted(t, r.resolver)
	for _, c := range []struct {
		name     string
		proof    bool
		answered bool
		servers  int
		queries  uint64
		kept     float64
	}{
		{"a.example.org.", false, true, 1, 1, 0},
		{"b.example.org.", true, true, 1, 1, 0},
		{"c.example.org.", true, false, 0, 1, 0},
		{"c.example.org.", false, false, 0, 1, 0},
		{"a.example.org.", true, true, 1, 1, 0},
		{"a.example.org.", false, true, 1, 1, 1},
	} {
		m := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
		m.SetEdns0(1232, true)
		w := dnstest.NewRecorder(&test.ResponseWriter{})
		_, err := r.ServeDNS(advice.With(context.Background(), &advice.Source{Proof: c.proof, Purse: &purse}), w, m)
		if answered := w.Msg != nil && len(w.Msg.Answer) == 1; answered != c.answered || s.count(c.name) != c.servers || err != nil {
			t.Errorf("%+v: %v %v, asked %d times", c, w.Msg, err, s.count(c.name))
		}
		if queries, kept := counted(t, r.resolver); queries-began != c.queries || kept-keptBefore != c.kept {
			t.Errorf("%+v: counted as %d and %v", c, queries-began, kept-keptBefore)
		}
	}
}
