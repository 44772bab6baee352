package recurse

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// answer makes w the reply to q that a Result is: RA set, AA never, DNSSEC records for who asked for them only (RFC
// 4035 §3.2.1).
func (r *Recurse) answer(w *wire.Reply, q *wire.Query, res *iterate.Result) {
	if res.Rcode == wire.ServFail {
		w.Fail(wire.ServFail, r.explain(res))
		return
	}
	w.Begin(q)
	w.SetRcode(res.Rcode)
	w.SetFlag(wire.FlagRA, true)
	w.SetWriter(pluginName)
	if res.Told {
		w.AddEDE(res.Code, clip(res.Text))
	}
	r.scope(w, q, res)
	if len(w.Options()) > 0 && q.EDNS().Present {
		w.CountOPT()
	}
	a := appender{w, q.DO(), q.Type(), q.Lower(), q.Name()}
	for _, s := range res.Answer {
		a.set(wire.Answer, s, false)
	}
	for _, s := range res.Authority {
		a.set(wire.Authority, s, true)
	}
	w.Vouch(res.By)
}

// explain is the error of a Result: it tells the client why and, if *errors* is to tell that, which server failed last.
// If none did though some were asked, as with aliases in a circle, there is nothing to tell.
func (r *Recurse) explain(res *iterate.Result) error {
	err := &explained{code: res.Code, text: res.Text}
	if res.Repeated {
		err.more = repeated
	}
	switch m := res.Missed; {
	case !r.details || m.N == 0 && res.Queries > 0:
		return err
	case m.N == 0:
		return plugin.WithAttempt(err, "", "", 0)
	case m.TLS:
		return plugin.WithAttempt(err, m.Server.Addr.String(), "tls", int(m.N))
	case m.TCP:
		return plugin.WithAttempt(err, m.Server.Addr.String(), "tcp", int(m.N))
	default:
		return plugin.WithAttempt(err, m.Server.Addr.String(), "udp", int(m.N))
	}
}

// appender adds RRsets to a reply.
type appender struct {
	w     *wire.Reply
	do    bool
	qtype uint16
	lower []byte // the question's name
	asked []byte // as it was written
}

// set adds an RRset and its signatures. Those that prove something are for who wants proofs.
func (a *appender) set(sec wire.Section, s *rrset.Set, proof bool) {
	if proof && !a.do && (s.Type == rrset.TypeNSEC || s.Type == rrset.TypeNSEC3) {
		return
	}
	owner := []byte(s.Name)
	if string(a.lower) == s.Name {
		owner = a.asked
	}
	s.Each(func(rdata string) bool {
		return a.w.Record(sec, owner, s.Type, wire.ClassIN, s.TTL, []byte(rdata))
	})
	if !a.do && a.qtype != rrset.TypeANY {
		return
	}
	s.EachSig(func(rdata string) bool {
		return a.w.Record(sec, owner, wire.TypeRRSIG, wire.ClassIN, s.TTL, []byte(rdata))
	})
}
