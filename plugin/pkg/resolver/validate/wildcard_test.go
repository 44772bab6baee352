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

// A zone's signature of a wildcard above it proves nothing of names in it: it has fewer labels than the zone's name. Nobody is asked for
// what is closer than such a wildcard.
func TestWildcardAboveZone(t *testing.T) {
	w, _, z := lab(t, dns.ED25519)
	low := newSigner(t, "low.example.", dns.ED25519)
	w.child(z, low)
	star := low.signed(t, "www.low.example.", "*.example. 300 IN A 192.0.2.1")
	gap := low.signed(t, "", "low.example. 300 IN NSEC zz.low.example. A NS SOA RRSIG NSEC")
	w.noDS(low, "www.low.example.", "www.low.example. 300 IN NSEC zz.low.example. A RRSIG NSEC")
	w.want("wildcard above", w.judge("www.low.example.", dns.TypeA, message(t, "www.low.example.", dns.TypeA, 0, star, gap)), Bogus, dns.ExtendedErrorCodeDNSBogus)
	star = low.signed(t, "www.low.example.", "*.low.example. 300 IN A 192.0.2.1")
	w.want("wildcard in it", w.judge("www.low.example.", dns.TypeA, message(t, "www.low.example.", dns.TypeA, 0, star, gap)), Secure, 0)
}
