package log

import (
	"log/slog"
	"net"

	"github.com/coredns/coredns/plugin/pkg/rcode"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// fields are what a line as a JSON object has beside its text.
func fields(f *replacer.Facts) []slog.Attr {
	name := f.Name
	if f.WireName != nil {
		name = wire.Text(f.WireName)
	}
	answered := slog.Any("rcode", nil)
	if f.Reply.Written {
		answered = slog.String("rcode", rcode.ToString(f.Reply.Rcode))
	}
	return []slog.Attr{
		slog.String("client_ip", clientIP(f)),
		slog.String("qname", name),
		slog.String("qtype", dns.Type(f.Type).String()),
		answered,
		slog.Int("request_size_bytes", f.Size),
		slog.Int("response_size_bytes", f.Reply.Len),
		slog.Float64("duration_seconds", f.Reply.Duration.Seconds()),
	}
}

// clientIP is the client's address without a port.
func clientIP(f *replacer.Facts) string {
	switch {
	case f.Client.IsValid():
		return f.Client.Addr().String()
	case f.ClientAddr == nil:
		return ""
	}
	if host, _, err := net.SplitHostPort(f.ClientAddr.String()); err == nil {
		return host
	}
	return f.ClientAddr.String()
}
