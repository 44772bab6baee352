package forward

import (
	"context"
	"net"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/dnstap"
	"github.com/coredns/coredns/plugin/dnstap/msg"
	"github.com/coredns/coredns/request"

	tap "github.com/dnstap/golang-dnstap"
)

// attempt is one query to one upstream, for those who are told each, after it.
type attempt struct {
	began    time.Time // when the client's query came to forward
	ended    time.Time
	own      net.Addr // where the query was sent from; nil if it was not
	upstream string   // HOST:PORT
	proto    string   // what was really used: "udp" or "tcp"
	scheme   string   // of package transport: what stands upon that
	query    []byte   // as sent, with the client's id
	reply    []byte   // as it came, with the client's id; nil if none came
}

// tapper is told messages: *dnstap.Dnstap is one.
type dnstapper interface {
	TapMessageWithMetadata(ctx context.Context, m *tap.Message, state request.Request)
}

// tapped is one who is told each attempt.
type dnstapped struct {
	dnstapper
	raw bool // with the messages themselves
}

// SetTapPlugin makes tapPlugin, and all of its kind that stand directly behind it, learn each attempt.
func (f *Forward) SetTapPlugin(tapPlugin *dnstap.Dnstap) {
	for ; tapPlugin != nil; tapPlugin, _ = tapPlugin.Next.(*dnstap.Dnstap) {
		f.taps = append(f.taps, dnstapped{tapPlugin, tapPlugin.IncludeRawMessage})
	}
}

// findTaps looks for dnstap in the server block.
func (f *Forward) findTaps(config *dnsserver.Config) {
	if t, ok := config.Handler("dnstap").(*dnstap.Dnstap); ok {
		f.SetTapPlugin(t)
	}
}

// message is what t is told about the attempt, but for the message itself.
func (a *attempt) message(kind tap.Message_Type) *tap.Message {
	m := new(tap.Message)
	msg.SetType(m, kind)
	msg.SetQueryTime(m, a.began)
	if a.own != nil {
		_ = msg.SetQueryAddress(m, a.own) // it is one of UDP or TCP
		if ip := net.IP(m.QueryAddress); ip.IsUnspecified() {
			m.QueryAddress = nil // the socket is open for all addresses of the machine, as those of QUIC are
		}
	}
	if upstream := a.address(); upstream != nil { // last, so that the family is that of the upstream
		_ = msg.SetResponseAddress(m, upstream) // likewise
	}
	protocol := tap.SocketProtocol_UDP
	if a.proto == "tcp" {
		protocol = tap.SocketProtocol_TCP
	}
	m.SocketProtocol = &protocol
	msg.SetProtocol(m, a.scheme)
	return m
}

func (a *attempt) address() net.Addr {
	if a.proto == "tcp" {
		if addr, err := net.ResolveTCPAddr("tcp", a.upstream); err == nil {
			return addr
		}
		return nil
	}
	if addr, err := net.ResolveUDPAddr("udp", a.upstream); err == nil {
		return addr
	}
	return nil
}

// frames are the query, and the reply if one came. raw puts the messages themselves into them.
func (a *attempt) frames(raw bool) []*tap.Message {
	query := a.message(tap.Message_FORWARDER_QUERY)
	if raw {
		query.QueryMessage = a.query
	}
	if a.reply == nil {
		return []*tap.Message{query}
	}
	reply := a.message(tap.Message_FORWARDER_RESPONSE)
	msg.SetResponseTime(reply, a.ended)
	if raw {
		reply.ResponseMessage = a.reply
	}
	return []*tap.Message{query, reply}
}
