package plugin

import (
	"context"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Keys of a query's context. Package dnsserver has them under the names Key, LoopKey and ViewKey, too.
type (
	// ServerKey holds the server, a *dnsserver.Server.
	ServerKey struct{}
	// LoopKey holds an int: how often the query has come back through the server's chain.
	LoopKey struct{}
	// ViewKey holds a string: the view that the query was led to, "" if none.
	ViewKey struct{}
	// PacketKey holds octets: see Packet.
	PacketKey struct{}
	// InnerKey holds a bool: see Inner.
	InnerKey struct{}
)

// Server is what plugins may ask of the server that a query came to.
type Server interface {
	// Label is the address with its scheme, dns://:53: the label server of metrics.
	Label() string
	// ServeDNS leads a question of a plugin's own through all of the server.
	ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg)
	// CookieOf is what the COOKIE option of r, a query of the client at addr, tells of it (RFC 7873).
	CookieOf(r *dns.Msg, addr netip.Addr) wire.CookieState
	// Forgeable reports whether the address of a client that asks over proto may be somebody else's.
	Forgeable(proto wire.Proto) bool
	// AsSent is a copy of m, a reply to req, as the client at the other end of w gets it.
	AsSent(m, req *dns.Msg, w dns.ResponseWriter) *dns.Msg
	// AppendSent appends to b the reply that w holds for q as the client gets it: AsSent for the wire lane.
	AppendSent(b []byte, w *wire.Reply, q *wire.Query) []byte
	// Shed reports whether a query that comes over UDP is to be dropped, as the listener has more replies than it
	// can send.
	Shed() bool
}

// ServerFrom is the server that the query of ctx came to, nil outside of a server.
func ServerFrom(ctx context.Context) Server {
	s, _ := ctx.Value(ServerKey{}).(Server)
	return s
}

// Label is the label server of metrics about the query of ctx, "" outside of a server.
func Label(ctx context.Context) string {
	if s := ServerFrom(ctx); s != nil {
		return s.Label()
	}
	return ""
}

// OverQUIC reports whether the query of ctx came over a stream of QUIC, which its client's address does not tell.
func OverQUIC(ctx context.Context) bool {
	label := Label(ctx)
	return strings.HasPrefix(label, "quic://") || strings.HasPrefix(label, "https3://")
}

// CookieOf is Server.CookieOf of the server that the query of ctx came to: none outside of a server.
func CookieOf(ctx context.Context, r *dns.Msg, addr netip.Addr) wire.CookieState {
	if s := ServerFrom(ctx); s != nil {
		return s.CookieOf(r, addr)
	}
	return wire.CookieNone
}

// Forgeable is Server.Forgeable of the server that the query of ctx came to: outside of a server, proto tells.
func Forgeable(ctx context.Context, proto wire.Proto) bool {
	if s := ServerFrom(ctx); s != nil {
		return s.Forgeable(proto)
	}
	return proto == wire.UDP
}

// Packet is the query of ctx as it came, for who passes it on unchanged; it is only to be read. There is one for UPDATE
// messages only, and only from listeners of ours; nil for all else.
func Packet(ctx context.Context) []byte {
	p, _ := ctx.Value(PacketKey{}).([]byte)
	return p
}

// Inner reports whether the query of ctx is a question of a plugin's own (package upstream), and not one of a client.
func Inner(ctx context.Context) bool {
	inner, _ := ctx.Value(InnerKey{}).(bool)
	return inner
}

// View is the view that the query of ctx was led to, "" if none.
func View(ctx context.Context) string {
	v, _ := ctx.Value(ViewKey{}).(string)
	return v
}
