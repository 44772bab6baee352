package plugin

import (
	"crypto/tls"

	"github.com/miekg/dns"
)

// Wrapped is the writer that a plugin's own writer stands around. Embedded, it hands on what plugins further in may
// ask beside what is in dns.ResponseWriter. It does not hand on TakeReply: a writer that takes replies changes or
// watches them itself.
type Wrapped struct{ dns.ResponseWriter }

// ConnectionState implements dns.ConnectionStater.
func (w Wrapped) ConnectionState() *tls.ConnectionState { return ConnectionState(w.ResponseWriter) }

// AskedName implements Asker.
func (w Wrapped) AskedName() string { return AskedName(w.ResponseWriter) }

// ConnectionState is the TLS state of the query's connection, nil if there is none or w does not tell it.
func ConnectionState(w dns.ResponseWriter) *tls.ConnectionState {
	if c, ok := w.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}

// Asker is the writer of a plugin that looks up another name than the client asked for, or stands around one.
type Asker interface {
	// AskedName is the name that the client asked for, "" if it is the one that is looked up.
	AskedName() string
}

// AskedName is the name that the client of w asked for, "" if it is the one that is looked up.
func AskedName(w dns.ResponseWriter) string {
	if a, ok := w.(Asker); ok {
		return a.AskedName()
	}
	return ""
}
