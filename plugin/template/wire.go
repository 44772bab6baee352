package template

import (
	"context"
	"encoding/binary"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// A template that is settled by the question answers in the wire lane: one without conditions and variables, whose texts look at nothing else.
// Most are: those that have no records for a type, or deny the names of a zone. Others answer messages.

// anyName matches all names.
var anyName = regexp.MustCompile(".*")

// settle finds out whether t is settled by the question.
func (t *template) settle() {
	if len(t.vars) > 0 || len(t.conditions) > 0 || t.rcode > 0xF {
		return
	}
	for s := range t.sections {
		for i := range t.sections[s] {
			if r := &t.sections[s][i]; t.kept == nil && (r.fixed == nil || !r.pack()) {
				return
			}
		}
	}
	t.settled, t.counted = true, new(counted)
}

// pack makes the wire form of a fixed record.
func (r *record) pack() bool {
	if r.fixed.Header().Rrtype == dns.TypeOPT {
		return false
	}
	var err error
	r.packed, err = wire.AppendRR(nil, r.fixed)
	return err == nil
}

// ServeWire implements plugin.WireHandler.
func (h Handler) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	name := wire.Text(q.Lower())
	for i := range h.Templates {
		t := &h.Templates[i]
		zone := t.concerns(name, q.Class(), q.Type())
		if zone == "" {
			continue
		}
		if !t.settled || q.Class() != dns.ClassINET || strings.Contains(name, `\`) {
			return wire.Unpack
		}
		switch {
		case t.fits(name):
			return t.answerWire(ctx, w, q, zone, name)
		case !t.fall.Through(name):
			w.Fail(wire.ServFail, nil)
			return wire.Done
		}
	}
	return plugin.NextWire(h.Name(), h.Next, ctx, w, q)
}

// WireSelf implements plugin.WireHandler.
func (h Handler) WireSelf() plugin.Handler { return h }

// fits reports whether a regex matches name.
func (t *template) fits(name string) bool {
	for _, r := range t.regex {
		if r == anyName || r.MatchString(name) {
			return true
		}
	}
	return false
}

// answerWire makes w the reply that answer would write. What it cannot make goes to answer.
func (t *template) answerWire(ctx context.Context, w *wire.Reply, q *wire.Query, zone, name string) wire.Outcome {
	qtype := dns.Type(q.Type()).String()
	if q.Type() == dns.TypeANY {
		qtype = dns.TypeToString[t.qtype]
	}
	if t.rcode == dns.RcodeServerFailure && t.ede == nil {
		t.counted.inc(ctx, zone, qtype)
		w.Fail(wire.ServFail, nil)
		return wire.Done
	}
	w.Begin(q)
	w.SetWriter(pluginName)
	w.SetRcode(t.rcode)
	if t.rcode != dns.RcodeServerFailure {
		w.SetFlag(wire.FlagAA, true)
		if !t.addRecords(w, q, zone, name, qtype) {
			return wire.Unpack
		}
	}
	t.counted.inc(ctx, zone, qtype)
	if t.ede != nil {
		w.AddEDE(t.ede.InfoCode, t.ede.ExtraText)
		w.CountOPT()
	}
	return wire.Done
}

// sections are the sections of a reply in the wire lane.
var sections = [...]wire.Section{answer: wire.Answer, authority: wire.Authority, additional: wire.Additional}

// addRecords adds the records of all sections. It reports false if some cannot be had, or one is an alias that is to be followed.
func (t *template) addRecords(w *wire.Reply, q *wire.Query, zone, name, qtype string) bool {
	if t.kept == nil {
		for s := range t.sections {
			for i := range t.sections[s] {
				r := &t.sections[s][i]
				owner := r.packed[:wire.NameLen(r.packed)]
				if r.owned {
					owner = q.Lower()
				}
				if s == answer && leads(q, r.packed) {
					return false
				}
				add(w, sections[s], owner, r.packed)
			}
		}
		return true
	}
	k := t.had(name, "IN", qtype)
	if k == nil {
		d := &data{Zone: zone, Name: name, Class: "IN", Type: qtype}
		t.matchName(d)
		var err error
		if k, err = t.keep(d, nil); err != nil {
			return false
		}
	}
	if k.broken {
		return false
	}
	for s, b := range k.wire {
		for len(b) > 0 {
			if s == answer && leads(q, b) {
				return false
			}
			b = b[add(w, sections[s], b[:wire.NameLen(b)], b):]
		}
	}
	return true
}

// add adds the record that b begins with, in wire form, with another owner. It returns how long the record is in b.
func add(w *wire.Reply, s wire.Section, owner, b []byte) int {
	at := wire.NameLen(b)
	fixed := b[at : at+10] // type, class, TTL and length of the data (RFC 1035 §3.2.1)
	end := at + 10 + int(binary.BigEndian.Uint16(fixed[8:]))
	w.Record(s, owner, binary.BigEndian.Uint16(fixed), binary.BigEndian.Uint16(fixed[2:]), binary.BigEndian.Uint32(fixed[4:]), b[at+10:end])
	return end
}

// leads reports whether an answer to q that the record at the begin of b is in is to be followed.
func leads(q *wire.Query, b []byte) bool {
	return (q.Type() == dns.TypeA || q.Type() == dns.TypeAAAA) && binary.BigEndian.Uint16(b[wire.NameLen(b):]) == dns.TypeCNAME
}

// counted is the series of matches in which the last query was counted: the next one is most often counted in it, too.
type counted struct{ last atomic.Pointer[series] }

type series struct {
	server, view, zone, qtype string
	counter                   prometheus.Counter
}

// inc counts a query of class IN.
func (c *counted) inc(ctx context.Context, zone, qtype string) {
	server, view := metrics.WithServer(ctx), metrics.WithView(ctx)
	s := c.last.Load()
	if s == nil || s.server != server || s.view != view || s.zone != zone || s.qtype != qtype {
		labels := labelsOf(ctx, &data{Zone: zone, Class: "IN", Type: qtype})
		s = &series{server, view, zone, qtype, matches.WithLabelValues(labels...)}
		c.last.Store(s)
	}
	s.counter.Inc()
}
