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
	size := w.PlainLen()
	if taken, err = plugin.TakeReply(rec.ResponseWriter, w, r); taken { // now it is known whether it got TC
		now := time.Now()
		rec.taken = true
		rec.Len += size
		rec.facts.SetTaken(w, r, rec.Len, now.Sub(rec.Start))
		rec.typ = response.TypifyReply(w, rec.facts.Type, rec.facts.DO, now.UTC())
	}
	return taken, err
}
