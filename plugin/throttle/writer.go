package throttle

import (
	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin"
)

// writer is the writer that the plugins below get: what is too much does not go to the client.
type writer struct {
	plugin.Wrapped
	asker
	query *dns.Msg
}

// WriteMsg sends m, nothing, or a reply with TC instead.
func (w *writer) WriteMsg(m *dns.Msg) error {
	switch w.asker.reply(fingerprintOfMsg(m, w.query)) {
	case drop:
		return nil
	case slip:
		return w.ResponseWriter.WriteMsg(truncated(w.query))
	}
	return w.ResponseWriter.WriteMsg(m)
}
