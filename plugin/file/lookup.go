package file

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Result is what came of Zone.Lookup.
type Result int

const (
	Success       Result = iota // answered; also for empty non-terminals, then with the SOA record in ns
	NameError                   // the name does not exist
	Delegation                  // the name is at or below a zone cut
	NoData                      // the name exists, the type does not
	ServerFailure               // there is no data, or it leads nowhere
)

// MaxSerialIncrement is the greatest difference of two serials of which one is newer (RFC 1982 §3.1).
const MaxSerialIncrement uint32 = 2147483647

// Lookup answers for qname and the type of state's question: the records of the sections, and what they mean. DNSSEC
// records are among them if state's client asks for them. Where an alias leads to a name that the zone does not have,
// the server of ctx is asked, if there is one.
func (z *Zone) Lookup(ctx context.Context, state request.Request, qname string) (answer, ns, extra []dns.RR, result Result) {
	v, expired := z.version()
	if v == nil || expired {
		return nil, nil, nil, ServerFailure
	}
	if loops, _ := ctx.Value(plugin.LoopKey{}).(int); loops > upstream.MaxLoops {
		return nil, nil, nil, ServerFailure
	}
	question := &dns.Msg{Question: []dns.Question{{Name: qname, Qtype: state.QType(), Qclass: dns.ClassINET}}, Extra: state.Req.Extra}
	var q wire.Query
	if err := q.SetMsg(question, peerOf(state)); err != nil || !wire.Below(q.Lower(), v.Origin()) {
		return nil, nil, nil, NameError
	}
	a := answerers.Get().(*zone.Answerer)
	defer free(a)
	var w wire.Reply
	w.Reset(make([]byte, 0, 1024))
	r := a.Answer(v, &w, &q)
	if r == zone.External {
		r = z.follow(ctx, a, &w, q.Type(), state)
	}
	m, err := w.Msg(question)
	if err != nil {
		return nil, nil, nil, ServerFailure
	}
	return m.Answer, m.Ns, m.Extra, resultOf(r)
}

// peerOf is the client of a query as far as it is known.
func peerOf(state request.Request) (p wire.Peer) {
	if state.W != nil && state.Proto() == "tcp" {
		p.Proto = wire.TCP
	}
	return p
}

func resultOf(r zone.Result) Result {
	switch r {
	case zone.Hit, zone.Empty:
		return Success
	case zone.NXDomain:
		return NameError
	case zone.Referral:
		return Delegation
	case zone.NoData:
		return NoData
	}
	return ServerFailure
}
