package autopath

import (
	"errors"
	"net"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// question is a query of the wire lane as far as a search list may depend on it: its question, and who asks.
type question struct {
	msg       dns.Msg
	one       [1]dns.Question
	from      *wire.Query
	tcp       net.TCPAddr
	udp       net.UDPAddr
	remoteBuf [16]byte
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

// RemoteAddr is the client's address.
func (x *question) RemoteAddr() net.Addr {
	a := x.from.Client.Addr()
	x.remoteBuf = a.As16()
	ip := x.remoteBuf[:]
	if a.Is4() {
		ip = ip[12:]
	}
	if x.from.Proto == wire.TCP {
		x.tcp = net.TCPAddr{IP: ip, Port: int(x.from.Client.Port()), Zone: a.Zone()}
		return &x.tcp
	}
	x.udp = net.UDPAddr{IP: ip, Port: int(x.from.Client.Port()), Zone: a.Zone()}
	return &x.udp
}

// LocalAddr is the address that the query was sent to.
func (x *question) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(x.from.Local) }

var errQuestion = errors.New("autopath: a search list is no reply")

// WriteMsg and the methods below are what a writer has besides; nobody has to write here.
func (x *question) WriteMsg(*dns.Msg) error   { return errQuestion }
func (x *question) Write([]byte) (int, error) { return 0, errQuestion }
func (x *question) Close() error              { return nil }
func (x *question) TsigStatus() error         { return nil }
func (x *question) TsigTimersOnly(bool)       {}
func (x *question) Hijack()                   {}
