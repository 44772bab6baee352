package recurse

import (
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/dnstap"
	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/plugin/pkg/proxy"

	tap "github.com/dnstap/golang-dnstap"
)

// This file tells each exchange with a server to the block's dnstap, as RESOLVER_QUERY and RESOLVER_RESPONSE. Blocks that
// share a resolver share its exchanges, so each block's dnstap is told all of them.

// tapper is told messages: *dnstap.Dnstap is one.
type tapper interface{ TapMessage(m *tap.Message) }

// tapped is one who is told.
type tapped struct {
	tapper
	raw bool // with the messages themselves
}

// taps are those who are told.
type taps struct {
	all atomic.Pointer[[]tapped]
}

// load is all of them, none most often.
func (t *taps) load() []tapped {
	if all := t.all.Load(); all != nil {
		return *all
	}
	return nil
}

// change adds taps and removes others. Those who start and stop blocks do so one after the other.
func (t *taps) change(add, remove []tapped) {
	all := slices.DeleteFunc(slices.Concat(t.load(), add), func(d tapped) bool { return slices.Contains(remove, d) })
	t.all.Store(&all)
}

// tapsOf are those of a block.
func tapsOf(cfg *dnsserver.Config) (all []tapped) {
	d, _ := cfg.Handler("dnstap").(*dnstap.Dnstap)
	for ; d != nil; d, _ = d.Next.(*dnstap.Dnstap) {
		all = append(all, tapped{d, d.IncludeRawMessage})
	}
	return all
}

// tap tells of f, which has just ended as x says.
func (f *flight) tap(x *proxy.Exchange, all []tapped) {
	now := time.Now()
	message := func(kind tap.Message_Type) *tap.Message {
		m := &tap.Message{QueryZone: []byte(f.key.zone)}
		msg.SetType(m, kind)
		msg.SetQueryTime(m, f.began)
		var to, from net.Addr = net.UDPAddrFromAddrPort(f.server.Addr), x.Local
		protocol := tap.SocketProtocol_UDP
		if x.Proto == "tcp" {
			to, protocol = net.TCPAddrFromAddrPort(f.server.Addr), tap.SocketProtocol_TCP
		}
		_ = msg.SetResponseAddress(m, to) // it is one of UDP or TCP
		if from != nil {
			_ = msg.SetQueryAddress(m, from) // likewise
		}
		m.SocketProtocol = &protocol
		return m
	}
	for _, d := range all {
		query := message(tap.Message_RESOLVER_QUERY)
		if d.raw {
			query.QueryMessage = f.x.Query
		}
		d.TapMessage(query)
		if x.Err != nil {
			continue
		}
		reply := message(tap.Message_RESOLVER_RESPONSE)
		msg.SetResponseTime(reply, now)
		if d.raw {
			reply.ResponseMessage = x.Reply
		}
		d.TapMessage(reply)
	}
}
