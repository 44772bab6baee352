package throttle

import (
	"crypto/tls"

	"github.com/miekg/dns"
)

// writer is the writer that the plugins below get: what is too much does not go to the client.
type writer struct {
	dns.ResponseWriter
	visit
	query *dns.Msg
}

// WriteMsg sends m, nothing, or a reply with TC instead.
func (w *writer) WriteMsg(m *dns.Msg) error {
	switch w.visit.reply(fingerprintOfMsg(m, w.query)) {
	case drop:
		return nil
	case slip:
		return w.ResponseWriter.WriteMsg(truncated(w.query))
	}
	return w.ResponseWriter.WriteMsg(m)
}

// ConnectionState is the TLS state of the query's connection, nil if there is none.
func (w *writer) ConnectionState() *tls.ConnectionState {
	if c, ok := w.ResponseWriter.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}
