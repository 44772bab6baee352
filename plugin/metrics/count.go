package metrics

import (
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
type observer struct {
	Recorder
}

func newObserver(w dns.ResponseWriter) *observer {
	o := &struct { // one piece of memory
		observer
		recorder dnstest.Recorder
	}{recorder: dnstest.Recorder{ResponseWriter: w, Start: time.Now()}}
	o.Recorder.Recorder = &o.recorder
	return &o.observer
}

// TakeReply implements plugin.ReplyTaker.
func (o *observer) TakeReply(w *wire.Reply, r *dns.Msg) (taken bool, err error) {
	rcode, size := w.Rcode(), w.PlainLen()
	if taken, err = plugin.TakeReply(o.ResponseWriter, w, r); taken {
		o.Rcode = rcode
		o.Len += size
	}
	return taken, err
}

// replied is what is counted of what was written, or of what the server will write.
func (o *observer) replied(status int) vars.Replied {
	r := vars.Replied{Rcode: status, Size: o.Len, Plugin: o.GetPlugin(), Took: time.Since(o.Start).Seconds()}
	if plugin.ClientWrite(status) {
		r.Rcode = o.Rcode
		r.Unanswered = o.Msg == nil && o.Len == 0
	}
	return r
}
