package validator

import (
	"fmt"
	"iter"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/resolver/advice"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

var _ advice.Examiner = (*Validator)(nil)

// Examine implements advice.Examiner. What is found out there goes into a memory of its own: whoever has made up a zone
// has made up its keys, too, and they are not to count elsewhere.
func (v *Validator) Examine(reply func(name string, typ uint16) *rrset.Message, all iter.Seq2[string, uint16]) error {
	conf := v.conf
	conf.Memory, conf.Anchors = newMemory(), v.live.Load().anchors
	for name, typ := range all {
		m := reply(name, typ)
		if m == nil {
			return fmt.Errorf("%s %s is not there", rrset.Text(name), dns.Type(typ))
		}
		t := validate.New(&conf, validate.Question{Name: name, Type: typ}, m, v.now())
		var missing []validate.Question
		step := func() { missing = v.step(t) }
		for computed.do(netip.Addr{}, name, 0, step); len(missing) > 0; computed.do(netip.Addr{}, name, 0, step) {
			for _, q := range missing {
				t.Give(q, reply(q.Name, q.Type))
			}
		}
		if verdict := t.Verdict(); verdict.Status != validate.Secure {
			return fmt.Errorf("%s %s is %s: %s", rrset.Text(name), dns.Type(typ), verdict.Status, verdict.Text)
		}
	}
	return nil
}
