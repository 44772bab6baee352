package test

import (
	"context"
	"errors"
	"fmt"
	golog "log"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var asked = promauto.NewCounterVec(prometheus.CounterOpts{Name: "coredns_twins_asked_total"}, []string{"name"})

// twins answers in both lanes; mutant is how they differ.
type twins struct {
	HandlerFunc
	mutant string
}

func (h *twins) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	asked.WithLabelValues("x").Inc()
	golog.Print("asked")
	switch r.Question[0].Qtype {
	case dns.TypeMX:
		return dns.RcodeServerFailure, errors.New("broken")
	case dns.TypeNULL:
		return dns.RcodeSuccess, nil // a drop
	}
	m := new(dns.Msg).SetReply(r)
	m.Authoritative = true
	m.Answer = []dns.RR{TXT(r.Question[0].Name + " 5 IN TXT a"), TXT(r.Question[0].Name + " 5 IN TXT b")}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

func (h *twins) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	if h.mutant == "decides nothing" || q.Type() == dns.TypeHINFO {
		return wire.Unpack
	}
	if h.mutant != "does not count" {
		asked.WithLabelValues(map[bool]string{true: "y", false: "x"}[h.mutant == "counts another"]).Inc()
	}
	if h.mutant != "does not log" {
		golog.Print("asked")
	}
	switch {
	case q.Type() == dns.TypeMX && h.mutant == "no error":
		w.Fail(dns.RcodeServerFailure, nil)
	case q.Type() == dns.TypeMX:
		w.Fail(dns.RcodeServerFailure, errors.New("broken"))
	case q.Type() == dns.TypeNULL:
		w.Drop()
	default:
		w.Begin(q)
		w.SetFlag(wire.FlagAA, h.mutant != "no flag")
		w.TXT(wire.Answer, q.Name(), dns.ClassINET, 5, "b") // the other way round
		if h.mutant != "no record" {
			w.TXT(wire.Answer, q.Name(), dns.ClassINET, 5, "a")
		}
	}
	return wire.Done
}

// witness is a testing.TB that keeps what fails.
type witness struct {
	testing.TB
	said []string
}

func (w *witness) Helper()                   {}
func (w *witness) Errorf(f string, v ...any) { w.said = append(w.said, fmt.Sprintf(f, v...)) }

// Lanes finds each difference, and nothing where there is none.
func TestLanes(t *testing.T) {
	var queries []*dns.Msg
	for _, typ := range []uint16{dns.TypeTXT, dns.TypeMX, dns.TypeNULL, dns.TypeHINFO} {
		queries = append(queries, new(dns.Msg).SetQuestion("wWw.example.org.", typ).SetEdns0(1232, true))
	}
	for mutant, want := range map[string]string{
		"":                "",
		"decides nothing": "none of 4 queries was decided in the wire lane",
		"does not count":  "coredns_twins_asked_total",
		"counts another":  "grows by 3 in the wire lane only",
		"does not log":    "logged in the message lane",
		"no error":        "error broken",
		"no flag":         "aa=false",
		"no record":       `"a" | www`,
	} {
		w := &witness{TB: t}
		Lanes(w, func() Handler { return &twins{mutant: mutant} }, queries...)
		said := strings.Join(w.said, "\n")
		if (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%q: said %q, want %q", mutant, said, want)
		}
	}
	w := &witness{TB: t}
	if Lanes(w, NextRefuses, queries...); len(w.said) != 1 {
		t.Errorf("a handler without a wire lane: %q", w.said)
	}
}

// NextRefuses makes a handler of the message lane.
func NextRefuses() Handler { return NextHandler(dns.RcodeRefused, nil) }
