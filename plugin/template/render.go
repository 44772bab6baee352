package template

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/cache"

	"github.com/miekg/dns"
)

// rendered is what a stanza made of a question. It is not changed any more.
type rendered struct {
	name, class, qtype string
	sections           [3][]dns.RR
}

// keep is how many questions a stanza remembers.
const keep = 1024

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
		t.kept = cache.New[*rendered](keep)
	}
}

// records returns new records for all sections. labels are those of the metrics.
func (t *template) records(d *data, labels []string) (sections [3][]dns.RR, err error) {
	if t.kept == nil {
		return t.render(d, labels)
	}
	key := cache.Hash([]byte(d.Name + " " + d.Class + " " + d.Type))
	if k, ok := t.kept.Get(key); ok && k.name == d.Name && k.class == d.Class && k.qtype == d.Type {
		return copied(k.sections), nil
	}
	if sections, err = t.render(d, labels); err != nil {
		return sections, err
	}
	t.kept.Add(key, &rendered{d.Name, d.Class, d.Type, copied(sections)})
	return sections, nil
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
				failures.WithLabelValues(append(append([]string(nil), labels...), sectionNames[s], text)...).Inc()
				return sections, fmt.Errorf("%s %q for %s: %w", sectionNames[s], text, d.Name, err)
			}
			if rr != nil {
				sections[s] = append(sections[s], rr)
			}
		}
	}
	return sections, nil
}
