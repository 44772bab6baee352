package log

import (
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// recorder is the writer of a query in the message lane. A reply that lies in a lane goes on as it is, and facts has then what
// the line needs of it.
type recorder struct {
	dnstest.Recorder
	facts *replacer.Facts // with those of the query
	taken bool            // the reply was such a one
	typ   response.Type   // its type
}

// WriteMsg writes a message, which counts in place of what was taken before.
func (rec *recorder) WriteMsg(m *dns.Msg) error {
	rec.taken = false
	return rec.Recorder.WriteMsg(m)
}

// TakeReply implements plugin.ReplyTaker.
func (rec *recorder) TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error) {
	to, ok := rec.ResponseWriter.(plugin.ReplyTaker)
	if !ok {
		return false, nil
	}
	if taken, err = to.TakeReply(w, r); taken { // now it is known whether it got TC
		rec.taken = true
		rec.facts.SetTaken(w, r, time.Since(rec.Start))
		rec.typ = response.TypifyReply(w, rec.facts.Type, rec.facts.DO, time.Now().UTC())
	}
	return taken, err
}
