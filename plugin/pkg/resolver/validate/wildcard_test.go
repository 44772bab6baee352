package validate

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// remembering is a Memory of signatures alone.
type remembering struct {
	known
	checks map[Sum]Held
}

func (r remembering) Check(sum Sum) (Held, bool) {
	h, ok := r.checks[sum]
	return h, ok
}
func (r remembering) KeepCheck(sum Sum, h Held) { r.checks[sum] = h }

// What a wildcard is expanded to has one signature, which is computed for one name and holds for all: each of them still
// has to have the proof that nothing is closer, and what is not the wildcard's is computed anew.
func TestExpansionsAreOneRRset(t *testing.T) {
	root := newSigner(t, ".", dns.ECDSAP256SHA256)
	w := newWorld(t, root)
	checks := 0
	w.conf.CheckCounted = func(uint8, bool) { checks++ }
	w.conf.Memory = remembering{known{}, map[Sum]Held{}}
	denial := root.signed(t, "", "*.wild. 300 IN NSEC z. A RRSIG NSEC")
	wild := root.signed(t, "", "*.wild. 300 IN A 192.0.2.1")
	for i := range 4 {
		name := fmt.Sprintf("n%d.wild.", i)
		checks = 0
		v := w.judge(name, dns.TypeA, message(t, name, dns.TypeA, 0, expand(wild, name), denial))
		w.want(name, v, Secure, 0)
		if checks > 0 != (i == 0) {
			t.Errorf("%s: %d signatures", name, checks)
		}
	}
	v := w.judge("n9.wild.", dns.TypeA, message(t, "n9.wild.", dns.TypeA, 0, expand(wild, "n9.wild."), nil))
	w.want("no proof", v, Bogus, dns.ExtendedErrorCodeNSECMissing)
	v = w.judge("*.wild.", dns.TypeA, message(t, "*.wild.", dns.TypeA, 0, wild, nil))
	w.want("the wildcard itself", v, Secure, 0)
	v = w.judge("n9.tame.", dns.TypeA, message(t, "n9.tame.", dns.TypeA, 0, expand(wild, "n9.tame."), denial))
	w.want("below another name", v, Bogus, dns.ExtendedErrorCodeDNSBogus)
	checks = 0
	v = w.judge("n9.wild.", dns.TypeA, message(t, "n9.wild.", dns.TypeA, 0, root.signed(t, "", "n9.wild. 300 IN A 192.0.2.1"), denial))
	if w.want("a name of its own", v, Secure, 0); checks != 1 {
		t.Errorf("a name of its own: %d signatures", checks)
	}
}

// expand is an RRset under another owner.
func expand(set []dns.RR, owner string) (all []dns.RR) {
	for _, rr := range set {
		rr = dns.Copy(rr)
		rr.Header().Name = owner
		all = append(all, rr)
	}
	return all
}
