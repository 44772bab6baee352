package iterate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is query name minimisation (RFC 9156): a server is asked for no more labels
// than it takes to learn the next zone cut, with type A, until the full name and type
// are due.

const (
	maxMinimise = 10 // MAX_MINIMISE_COUNT (RFC 9156 §2.3)
	oneLabel    = 4  // MINIMISE_ONE_LAB: steps of one label each
)

// minimiser is how far a name has been told.
type minimiser struct {
	labels int  // that are known to be at or above the next question's
	steps  int  // taken, over all cuts
	full   bool // the full name is asked
}

// Labels that begin with an underscore are no zone cuts (RFC 8552), and asking for them
// alone would tell as much as the whole.

// next is the question for the servers of a zone cut with so many labels on the way to
// name. last says that it is the full one.
func (m *minimiser) next(q Question) (next Question, last bool) {
	total := rrset.Labels(q.Name)
	if m.full || m.steps >= maxMinimise {
		return q, true
	}
	more := 1
	if m.steps >= oneLabel {
		left := maxMinimise - m.steps
		more = max(1, (total-m.labels+left-1)/left)
	}
	n := m.labels + more
	for n < total && rrset.FirstLabel(rrset.Last(q.Name, n)) != "" && rrset.FirstLabel(rrset.Last(q.Name, n))[0] == '_' {
		n++
	}
	if n >= total {
		return q, true
	}
	return Question{rrset.Last(q.Name, n), wire.TypeA}, false
}

// took notes that a minimised question was answered: its name is no zone cut.
func (m *minimiser) took(name string) {
	m.labels = rrset.Labels(name)
}

// at notes the zone whose servers are asked.
func (m *minimiser) at(zone string) { m.labels = rrset.Labels(zone) }
