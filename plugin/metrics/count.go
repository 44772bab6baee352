package metrics

import (
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// asked is what is counted of a query.
func asked(state *request.Request) vars.Asked {
	q := vars.Asked{Qtype: state.QType(), IPv4: state.Family() == 1, DO: state.Do(), Size: state.Len()}
	if state.Proto() == "tcp" {
		q.Proto = wire.TCP
	}
	return q
}

// observer knows of what is written to it what is counted.
//
// A plugin may write when ServeDNS has long returned, from any goroutine. Such a reply goes on, and is not counted.
type observer struct {
	Recorder
	mu   sync.Mutex   // guards the Recorder while plugins may write
	over bool         // the query is counted: nothing is recorded any more
	path *plugin.Path // knows who writes; nil outside of a server
}

func newObserver(w dns.ResponseWriter) *observer {
	o := &struct { // one piece of memory
		observer
		recorder dnstest.Recorder
	}{recorder: dnstest.Recorder{ResponseWriter: w, Start: time.Now()}}
	o.Recorder.Recorder = &o.recorder
	return &o.observer
}

// WriteMsg writes m, and records it once it is written: those that it goes to may change it.
func (o *observer) WriteMsg(m *dns.Msg) error {
	rcode, size := m.Rcode, wire.MsgLen(m)
	err := o.ResponseWriter.WriteMsg(m)
	o.record(m, rcode, size)
	return err
}

// Write writes octets, such as the reply to an update that was passed on. Their length is recorded, and the code of the
// message that they are.
func (o *observer) Write(b []byte) (int, error) {
	n, err := o.ResponseWriter.Write(b)
	rcode := dns.RcodeSuccess
	if m := new(dns.Msg); m.Unpack(b) == nil {
		rcode = m.Rcode
	}
	o.record(nil, rcode, n)
	return n, err
}

// TakeReply implements plugin.ReplyTaker.
func (o *observer) TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error) {
	rcode, size := w.Rcode(), w.PlainLen()
	if taken, err = plugin.TakeReply(o.ResponseWriter, w, r); taken {
		o.record(nil, rcode, size)
	}
	return taken, err
}

// record notes a reply, which m is if it is a message, unless the query is counted already.
func (o *observer) record(m *dns.Msg, rcode, size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	if m != nil {
		o.Msg = m
	}
	o.Rcode = rcode
	o.wrote(size)
}

// wrote notes that so many octets were written, and by whom. It may not get to the server: a plugin further out may
// capture it.
func (o *observer) wrote(size int) {
	o.Len += size
	if o.path != nil {
		o.Plugin = o.path.At()
	}
}

// replied is what is counted of what was written, or of what the server will write.
// Nothing is recorded from now on.
func (o *observer) replied(status int) vars.Replied {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	r := vars.Replied{Rcode: status, Size: o.Len, Plugin: o.GetPlugin(), Took: time.Since(o.Start).Seconds()}
	if plugin.ClientWrite(status) {
		r.Rcode = o.Rcode
		r.Unanswered = o.Msg == nil && o.Len == 0
	}
	return r
}
