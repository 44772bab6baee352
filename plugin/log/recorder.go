package log

import (
	"sync"
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
//
// A plugin may write when ServeDNS has long returned, from any goroutine. Such a reply goes on, but the line is without it.
type recorder struct {
	dnstest.Recorder
	facts *replacer.Facts // with those of the query
	taken bool            // the reply was such a one
	typ   response.Type   // its type

	mu   sync.Mutex // guards all of the above while plugins may write
	over bool       // the line is written: nothing is recorded any more
}

// end ends the recording. What was recorded is then the caller's alone.
func (rec *recorder) end() {
	rec.mu.Lock()
	rec.over = true
	rec.mu.Unlock()
}

// record calls f, unless the recording is over.
func (rec *recorder) record(f func()) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if !rec.over {
		f()
	}
}

// WriteMsg writes a message, which counts in place of what was taken before. It is recorded once it is written: those
// that it goes to may change it.
func (rec *recorder) WriteMsg(m *dns.Msg) error {
	rcode, size := m.Rcode, wire.MsgLen(m)
	err := rec.ResponseWriter.WriteMsg(m)
	rec.record(func() {
		rec.taken = false
		rec.Msg, rec.Rcode = m, rcode
		rec.Len += size
	})
	return err
}

// Write writes octets, such as the reply to an update that was passed on. Their length is recorded, and the message that
// they are.
func (rec *recorder) Write(b []byte) (int, error) {
	n, err := rec.ResponseWriter.Write(b)
	m := new(dns.Msg)
	bad := m.Unpack(b)
	rec.record(func() {
		rec.Len += n
		if bad == nil {
			rec.taken = false
			rec.Msg, rec.Rcode = m, m.Rcode
		}
	})
	return n, err
}

// TakeReply implements plugin.ReplyTaker.
func (rec *recorder) TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error) {
	size := w.PlainLen()
	if taken, err = plugin.TakeReply(rec.ResponseWriter, w, r); taken { // now it is known whether it got TC
		now := time.Now()
		rec.record(func() {
			rec.taken = true
			rec.Len += size
			rec.facts.SetTaken(w, r, rec.Len, now.Sub(rec.Start))
			rec.typ = response.TypifyReply(w, rec.facts.Opcode, rec.facts.Type, rec.facts.DO, now.UTC())
		})
	}
	return taken, err
}
