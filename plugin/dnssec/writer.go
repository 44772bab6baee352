package dnssec

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin"
)

// ResponseWriter signs the messages that are written to it.
type ResponseWriter struct {
	dns.ResponseWriter

	d      Dnssec
	ctx    context.Context //nolint:containedctx // of the query, which the writer serves
	server string
	query  *dns.Msg
}

// WriteMsg writes res with signatures. res is not changed.
func (w *ResponseWriter) WriteMsg(res *dns.Msg) error {
	if len(res.Question) != 1 || w.d.zones.Matches(res.Question[0].Name) == "" {
		return w.ResponseWriter.WriteMsg(res)
	}
	s := signing{d: &w.d, ctx: w.ctx, w: w.ResponseWriter, now: time.Now(), server: w.server}
	if opt := w.query.IsEdns0(); opt != nil && w.d.keepsRcodes != nil {
		s.compactOK = opt.Co() && w.d.keepsRcodes()
	}
	return w.ResponseWriter.WriteMsg(s.sign(res))
}

// Write writes bytes as they are.
func (w *ResponseWriter) Write(buf []byte) (int, error) {
	log.Warning("Dnssec called with Write: not signing reply")
	return w.ResponseWriter.Write(buf)
}

// ConnectionState implements dns.ConnectionStater.
func (w *ResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (w *ResponseWriter) AskedName() string { return plugin.AskedName(w.ResponseWriter) }
