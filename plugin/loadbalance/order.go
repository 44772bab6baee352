package loadbalance

import (
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// order works out the order of one reply. Its slices are used again for the next.
type order struct {
	items, done []item
	places      []uint16

	bytes *wire.Reply // what is ordered: either this
	rrs   []dns.RR    // or this section of a message
	name  [wire.MaxName]byte
}

var orders = sync.Pool{New: func() any { return new(order) }}

// reply puts the records of w into order.
func (o *order) reply(w *wire.Reply, p *policy, qtype uint16) {
	o.bytes, o.rrs, o.places = w, nil, o.places[:0]
	recs := w.Recs()
	for from := 0; from < len(recs); {
		sec, to := recs[from].Sec, from+1
		for to < len(recs) && recs[to].Sec == sec {
			to++
		}
		o.items = o.items[:0]
		for i := from; i < to; i++ {
			typ, covered := recs[i].Type, uint16(0)
			if typ == dns.TypeRRSIG {
				covered = coveredBy(w.RData(i))
			}
			o.items = append(o.items, item{at: uint16(i), class: classOf(typ, covered)})
		}
		o.done = p.job(sec, qtype).arrange(o.items, o.done[:0], o)
		for _, i := range o.done {
			o.places = append(o.places, i.at)
		}
		from = to
	}
	w.Reorder(o.places)
	o.bytes = nil
}

// message gives m sections in order.
func (o *order) message(m *dns.Msg, p *policy) {
	for n, section := range [...]*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		if len(*section) < 2 {
			continue
		}
		o.bytes, o.rrs, o.items = nil, *section, o.items[:0]
		for i, rr := range o.rrs {
			typ, covered := rr.Header().Rrtype, uint16(0)
			if sig, ok := rr.(*dns.RRSIG); ok {
				covered = sig.TypeCovered
			}
			o.items = append(o.items, item{at: uint16(i), class: classOf(typ, covered)})
		}
		o.done = p.job(wire.Section(n), m.Question[0].Qtype).arrange(o.items, o.done[:0], o)
		sorted := make([]dns.RR, len(o.done))
		for i, it := range o.done {
			sorted[i] = o.rrs[it.at]
		}
		*section = sorted
	}
	o.rrs = nil
}

// classOf is the class of records of a type; covered is what an RRSIG record covers.
func classOf(typ, covered uint16) class {
	switch typ {
	case dns.TypeCNAME:
		return alias
	case dns.TypeA, dns.TypeAAAA:
		return address
	case dns.TypeMX:
		return mail
	case dns.TypeTSIG, dns.TypeSIG:
		return signature
	case dns.TypeRRSIG:
		switch c := classOf(covered, 0); c {
		case address, mail:
			return c + 1
		default:
			return c
		}
	}
	return other
}

func coveredBy(rdata []byte) uint16 {
	if len(rdata) < 2 {
		return 0
	}
	return uint16(rdata[0])<<8 | uint16(rdata[1])
}

// addr implements source.
func (o *order) addr(at uint16) netip.Addr {
	var b []byte
	if o.bytes != nil {
		b = o.bytes.RData(int(at))
	} else {
		switch rr := o.rrs[at].(type) {
		case *dns.A:
			b = rr.A
		case *dns.AAAA:
			b = rr.AAAA
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}

// owner implements source.
func (o *order) owner(at uint16) []byte {
	var name []byte
	if o.bytes != nil {
		name, _ = wire.AppendNameAt(o.name[:0], o.bytes.Bytes(), int(o.bytes.Recs()[at].Off))
	} else {
		name, _ = wire.AppendName(o.name[:0], o.rrs[at].Header().Name)
	}
	wire.Lower(name, name)
	return name
}
