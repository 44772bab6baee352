// Package nonwriter captures a reply on its way to the client, for a plugin that wants to see or change what the
// plugins below it answer. A Writer belongs to one query, and to one goroutine at a time. Start at Writer.
package nonwriter

import (
	"crypto/tls"

	"github.com/miekg/dns"
)

// Writer is a dns.ResponseWriter that keeps the message instead of sending it. Only WriteMsg is caught; every other
// method, Write included, is that of the writer it stands for.
//
// Like any ResponseWriter it serves one query; the goroutines that use it must come one after the other.
type Writer struct {
	dns.ResponseWriter
	// Msg is the message last written, nil if there was none. It is the very message, not a copy.
	Msg *dns.Msg
}

// New returns a Writer that stands for w.
func New(w dns.ResponseWriter) *Writer { return &Writer{ResponseWriter: w} }

// WriteMsg keeps res and never fails.
func (w *Writer) WriteMsg(res *dns.Msg) error {
	w.Msg = res
	return nil
}

// ConnectionState returns the TLS state of the client's connection, nil if it has none.
func (w *Writer) ConnectionState() *tls.ConnectionState {
	if stater, ok := w.ResponseWriter.(dns.ConnectionStater); ok {
		return stater.ConnectionState()
	}
	return nil
}
