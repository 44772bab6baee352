package proxy

import (
	"context"
	"net"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Options is how an upstream is asked.
type Options struct {
	ForceTCP           bool   // over TCP, whatever the client came over
	PreferUDP          bool   // over UDP, whatever the client came over
	HCRecursionDesired bool   // health checks set RD
	HCDomain           string // the name that health checks ask for
}

// Connect asks state's query and waits for the reply, which has the query's id. It returns the address the query
// was sent from and the protocol, "udp" or "tcp". Plain DNS goes over the client's protocol, unless opts say
// otherwise. When ctx ends, so does the waiting.
//
// A query that cannot be packed is an error of github.com/miekg/dns; see Begin for all others.
func (p *Proxy) Connect(ctx context.Context, state request.Request, opts Options) (*dns.Msg, net.Addr, string, error) {
	if state.Req == nil || len(state.Req.Question) == 0 {
		return nil, nil, "", ErrInvalidRequest
	}
	c := calls.Get().(*call)
	defer calls.Put(c)
	m := *state.Req
	m.Id = 0
	query, err := m.PackBuffer(c.query[:cap(c.query)])
	if err != nil {
		return nil, nil, "", err
	}
	if cap(query) > cap(c.query) {
		c.query = query
	}
	c.x.Query, c.x.Owner = query, c
	c.x.Stream = opts.ForceTCP || !opts.PreferUDP && state.Proto() == "tcp"
	c.x.Timeout = 0
	c.x.Deadline, _ = ctx.Deadline()
	p.Begin(&c.x)
	c.wait(ctx, p)

	local, proto := c.x.Local, c.x.Proto
	if c.x.Err != nil {
		return nil, local, proto, c.x.Err
	}
	reply := new(dns.Msg)
	if err := wire.UnpackInto(reply, c.reply); err != nil {
		return nil, local, proto, err
	}
	reply.Id = state.Req.Id
	return reply, local, proto, nil
}

// call is an exchange that somebody waits for.
type call struct {
	x     Exchange
	query []byte
	reply []byte
	done  chan struct{}
}

var calls = sync.Pool{New: func() any {
	return &call{query: make([]byte, 0, 512), done: make(chan struct{}, 1)}
}}

// EndExchange keeps the reply and lets wait return.
func (c *call) EndExchange(x *Exchange) {
	c.reply = append(c.reply[:0], x.Reply...)
	x.Reply = nil
	c.done <- struct{}{}
}

// wait returns when the exchange has ended, which the end of ctx brings about.
func (c *call) wait(ctx context.Context, p *Proxy) {
	select {
	case <-c.done:
	case <-ctx.Done():
		p.Cancel(&c.x, ctx.Err())
		<-c.done
	}
}
