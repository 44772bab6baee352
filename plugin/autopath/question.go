package autopath

import (
	"errors"
	"net"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// question is a query of the wire lane as far as a search list may depend on it: its question, and who asks.
type question struct {
	nonwriter.Unconnected
	msg    dns.Msg
	one    [1]dns.Question
	from   *wire.Query
	remote wire.AddrScratch
}

var questions = sync.Pool{New: func() any { return new(question) }}

// asked calls f with q's question.
func asked(q *wire.Query, f func(request.Request) bool) bool {
	x := questions.Get().(*question)
	defer questions.Put(x)
	x.from = q
	x.one[0] = dns.Question{Name: wire.Text(q.Name()), Qtype: q.Type(), Qclass: q.Class()}
	x.msg.Id, x.msg.Question = q.ID(), x.one[:]
	return f(request.Request{W: x, Req: &x.msg})
}

// RemoteAddr is the client's address, LocalAddr the one that the query was sent to.
func (x *question) RemoteAddr() net.Addr { return x.remote.Set(x.from.Proto, x.from.Client) }
func (x *question) LocalAddr() net.Addr  { return x.from.LocalAddr() }

var errQuestion = errors.New("autopath: a search list is no reply")

// WriteMsg fails, as Write does: nobody has to write here.
func (x *question) WriteMsg(*dns.Msg) error   { return errQuestion }
func (x *question) Write([]byte) (int, error) { return 0, errQuestion }
