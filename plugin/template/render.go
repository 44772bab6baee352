package template

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// rendered is what a stanza made of a question. It is not changed any more.
type rendered struct {
	name, class, qtype string
	sections           [3][]dns.RR
	wire               [3][]byte // the same in wire form, with names in full
	broken             bool      // there is no such form, or it is for the message lane: an OPT record is a reply's own
}

// mostKept is how many questions a stanza remembers.
const mostKept = 1024

// remember lets t keep what it renders, if all of it follows from the question alone and is not
// had as records already.
func (t *template) remember() {
	worth := false
	for _, s := range t.sections {
		for i := range s {
			if !s[i].questionOnly() {
				return
			}
			worth = worth || s[i].fixed == nil
		}
	}
	if worth {
		t.kept = cache.New[*rendered](mostKept)
	}
}

// records returns new records for all sections. labels are those of the metrics.
func (t *template) records(d *data, labels []string) (sections [3][]dns.RR, err error) {
	if t.kept == nil {
		return t.render(d, labels)
	}
	k := t.had(d.Name, d.Class, d.Type)
	if k == nil {
		if k, err = t.keep(d, labels); err != nil {
			return sections, err
		}
	}
	return copied(k.sections), nil
}

// had is what is kept for a question, nil if nothing.
func (t *template) had(name, class, qtype string) *rendered {
	if k, ok := t.kept.Get(hashOf(name, class, qtype)); ok && k.name == name && k.class == class && k.qtype == qtype {
		return k
	}
	return nil
}

// keep renders the records for d's question, and keeps them for the next one. labels are as those of records.
func (t *template) keep(d *data, labels []string) (*rendered, error) {
	sections, err := t.render(d, labels)
	if err != nil {
		return nil, err
	}
	k := newRendered(d, sections)
	t.kept.Add(hashOf(d.Name, d.Class, d.Type), k)
	return k, nil
}

func hashOf(name, class, qtype string) uint64 {
	return cache.Hash([]byte(name + " " + class + " " + qtype))
}

// newRendered is sections as what was rendered for d. It takes them over.
func newRendered(d *data, sections [3][]dns.RR) *rendered {
	k := &rendered{name: d.Name, class: d.Class, qtype: d.Type, sections: sections}
	for s, rrs := range sections {
		for _, rr := range rrs {
			var err error
			if k.wire[s], err = wire.AppendRR(k.wire[s], rr); err != nil || rr.Header().Rrtype == dns.TypeOPT {
				k.wire = [3][]byte{} // it goes as a message, where the error is told
				k.broken = true
				return k
			}
		}
	}
	return k
}

// copied copies the records, as who comes after us may change them.
func copied(sections [3][]dns.RR) (out [3][]dns.RR) {
	for s, rrs := range sections {
		for _, rr := range rrs {
			out[s] = append(out[s], dns.Copy(rr))
		}
	}
	return out
}

// render makes the records of all sections. A failure is counted with labels, unless there are none.
func (t *template) render(d *data, labels []string) (sections [3][]dns.RR, err error) {
	for s := range t.sections {
		for i := range t.sections[s] {
			r := &t.sections[s][i]
			rr, ok, err := r.render(d)
			if err != nil {
				failures := templateFailures
				if ok {
					failures = rrFailures
				}
				text := r.text.Tree.Root.String()
				if labels != nil {
					failures.WithLabelValues(append(append([]string(nil), labels...), sectionNames[s], text)...).Inc()
				}
				return sections, fmt.Errorf("%s %q for %s: %w", sectionNames[s], text, d.Name, err)
			}
			if rr != nil {
				sections[s] = append(sections[s], rr)
			}
		}
	}
	return sections, nil
}
