package test

import (
	"fmt"
	"sort"

	"github.com/miekg/dns"
)

// sect is a section of a message.
type sect int

// The sections, in the order in which they stand in a message.
const (
	Answer sect = iota
	Ns
	Extra
)

func (s sect) String() string { return [...]string{"answer", "authority", "additional"}[s] }

// Case is a query and the reply that it should get.
type Case struct {
	Qname string
	Qtype uint16
	Rcode int
	Do    bool

	// Header bits, for tests that make messages of them. Neither Msg nor SortAndCheck looks at them.
	CheckingDisabled   bool
	RecursionAvailable bool
	AuthenticatedData  bool
	Authoritative      bool
	Truncated          bool

	Answer []dns.RR
	Ns     []dns.RR
	Extra  []dns.RR

	// Error is what ServeDNS should return; SortAndCheck does not look at it.
	Error error
}

// Msg returns the query: with RD, and for Do with an OPT record of 4096 octets and DO.
func (c Case) Msg() *dns.Msg {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(c.Qname), c.Qtype)
	if c.Do {
		m.Extra = []dns.RR{OPT(4096, true)}
	}
	return m
}

// SortAndCheck compares a reply with what tc expects: Header, and each Section without regard to the order of its
// records. The sections of resp are sorted by it.
func SortAndCheck(resp *dns.Msg, tc Case) error {
	if err := Header(tc, resp); err != nil {
		return err
	}
	for s, rrs := range [...]struct{ got, want []dns.RR }{{resp.Answer, tc.Answer}, {resp.Ns, tc.Ns}, {resp.Extra, tc.Extra}} {
		sort.Sort(RRSet(rrs.got))
		if err := compare(sect(s), sorted(rrs.want), rrs.got); err != nil {
			return err
		}
	}
	return nil
}

// Header compares the rcode of a reply and how many records its sections hold.
func Header(tc Case, resp *dns.Msg) error {
	if resp.Rcode != tc.Rcode {
		return fmt.Errorf("rcode is %s, expected %s", dns.RcodeToString[resp.Rcode], dns.RcodeToString[tc.Rcode])
	}
	for s, n := range [...]struct{ got, want int }{{len(resp.Answer), len(tc.Answer)}, {len(resp.Ns), len(tc.Ns)}, {len(resp.Extra), len(tc.Extra)}} {
		if n.got != n.want {
			return fmt.Errorf("%s section of the reply to %q holds %d records, expected %d", sect(s), tc.Qname, n.got, n.want)
		}
	}
	return nil
}

// Section compares rr, in its order, with what tc expects in section sec, in its order. An expected TTL of 303 stands
// for any. Of RRSIG records only the type covered, the number of labels and the signer count, and of SOA
// records only the primary's name, as the rest follows the clock; of OPT records the size and DO.
func Section(tc Case, sec sect, rr []dns.RR) error {
	want := map[sect][]dns.RR{Answer: tc.Answer, Ns: tc.Ns, Extra: tc.Extra}[sec]
	return compare(sec, want, rr)
}

func compare(sec sect, want, got []dns.RR) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s section holds %d records, expected %d", sec, len(got), len(want))
	}
	for i, rr := range got {
		if err := sameRecord(want[i], rr); err != nil {
			return fmt.Errorf("%s section, record %d: %w", sec, i, err)
		}
	}
	return nil
}

// anyTTL is the TTL of an expected record that may have any.
const anyTTL = 303

func sameRecord(want, got dns.RR) error {
	w, g := want.Header(), got.Header()
	ttl := w.Ttl == anyTTL || w.Ttl == g.Ttl || w.Rrtype == dns.TypeOPT
	if w.Name != g.Name || w.Rrtype != g.Rrtype || w.Class != g.Class && w.Rrtype != dns.TypeOPT || !ttl || !sameRData(want, got) {
		return fmt.Errorf("got %q, expected %q", got, want)
	}
	return nil
}

// sameRData compares what stands behind the header of two records of one type.
func sameRData(want, got dns.RR) bool {
	switch w := want.(type) {
	case *dns.RRSIG:
		g := got.(*dns.RRSIG)
		return w.TypeCovered == g.TypeCovered && w.Labels == g.Labels && w.SignerName == g.SignerName
	case *dns.SOA:
		return w.Ns == got.(*dns.SOA).Ns
	case *dns.OPT:
		g := got.(*dns.OPT)
		return w.UDPSize() == g.UDPSize() && w.Do() == g.Do()
	}
	return rdata(want) == rdata(got)
}

// rdata is the presentation form of a record without its header.
func rdata(rr dns.RR) string { return rr.String()[len(rr.Header().String()):] }

// CNAMEOrder reports an error if an answer holds the records of an alias's target before the alias itself.
func CNAMEOrder(res *dns.Msg) error {
	for i, rr := range res.Answer {
		alias, ok := rr.(*dns.CNAME)
		if !ok {
			continue
		}
		for _, earlier := range res.Answer[:i] {
			if earlier.Header().Name == alias.Target {
				return fmt.Errorf("record %q stands before the alias %q that leads to it", earlier, alias)
			}
		}
	}
	return nil
}

// RRSet sorts records: by owner, type, RDATA and TTL.
type RRSet []dns.RR

func (p RRSet) Len() int      { return len(p) }
func (p RRSet) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p RRSet) Less(i, j int) bool {
	a, b := p[i].Header(), p[j].Header()
	if a.Name != b.Name {
		return a.Name < b.Name
	}
	if a.Rrtype != b.Rrtype {
		return a.Rrtype < b.Rrtype
	}
	if x, y := rdata(p[i]), rdata(p[j]); x != y {
		return x < y
	}
	return a.Ttl < b.Ttl
}

// sorted is a sorted copy of rrs.
func sorted(rrs []dns.RR) []dns.RR {
	rrs = append([]dns.RR(nil), rrs...)
	sort.Sort(RRSet(rrs))
	return rrs
}
