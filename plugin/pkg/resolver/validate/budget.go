package validate

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Budget bounds the work that a client's query can cause, whatever zones hold:
// keys of equal tag and many signatures (CVE-2023-50387), NSEC3 records that
// cost many hashes (CVE-2023-50868), long chains. What fails before
// arithmetic, such as a signature whose time is over, costs nothing.
type Budget struct {
	Sigs    int // signatures of one RRset that are tried
	Tagged  int // keys of one tag and algorithm that are tried
	Trials  int // key by signature, for one RRset
	Checks  int // signatures computed in all; costly ones count as several (key.weight)
	DS      int // DS records looked at, for one zone
	Keys    int // DNSKEY records kept of one zone
	NSEC3   int // records of one denial
	Hashes  int // blocks of SHA-1 for NSEC3, in all: those of the iterations, one at least for each name
	Any     int // RRsets of a reply to ANY
	Fetches int // DS and DNSKEY RRsets asked for
	Looks   int // at RRsets, in all, at each as often as there is a step; see Task.look
}

// DefaultBudget is the usual one.
func DefaultBudget() Budget {
	return Budget{Sigs: 8, Tagged: 2, Trials: 16, Checks: 48, DS: 8, Keys: 32, NSEC3: 8, Hashes: 150, Any: 24, Fetches: 64, Looks: 4000}
}

// What costs no signature costs time all the same, once there is much of it: replies may have a thousand RRsets each,
// and all that is known of a reply is gone through again at each step.

// look spends a look at an RRset. To follow its name down the chain by so many labels counts, too, and so do RRsets
// that are passed by.
func (t *Task) look(more int) bool { return t.spend(&t.left.Looks, 1+more/lessThanLook, "rrsets") }

// lessThanLook is how many labels, or RRsets that are passed by, cost as much as a look at an RRset.
const lessThanLook = 4

// denying is how many RRsets of a reply deny something. That it has more than any needs is noted: there is one for each
// alias that a wildcard made, and some are for what the last one leads to.
func (t *Task) denying(m *rrset.Message) (n int) {
	for _, s := range m.Section[rrset.Authority] {
		if denies(s) {
			n++
		}
	}
	if n > mostDenials {
		t.over = "nsec_records"
	}
	return n
}

const mostDenials = 48

// denies reports whether an RRset is of a type that says what does not exist.
func denies(s *rrset.Set) bool {
	return s.Type == rrset.TypeNSEC || s.Type == rrset.TypeNSEC3 || s.Type == wire.TypeSOA
}
