package dnstest

import (
	"crypto/tls"
	"time"

	"github.com/miekg/dns"
)

// Recorder is a dns.ResponseWriter that passes everything on and keeps what it knows of the reply.
type Recorder struct {
	dns.ResponseWriter
	// Rcode is that of the message last written, NOERROR if there was none.
	Rcode int
	// Len is the sum of the lengths of all that was written, in octets; messages count uncompressed unless they ask
	// for compression.
	Len int
	// Msg is the message last written, nil if there was none. It is the very message, not a copy.
	Msg *dns.Msg
	// Start is when the Recorder was made.
	Start time.Time
}

// NewRecorder returns a Recorder for w, whose time starts now.
func NewRecorder(w dns.ResponseWriter) *Recorder {
	return &Recorder{ResponseWriter: w, Start: time.Now()}
}

// WriteMsg records res, and then writes it.
func (r *Recorder) WriteMsg(res *dns.Msg) error {
	r.Rcode = res.Rcode
	r.Len += res.Len()
	r.Msg = res
	return r.ResponseWriter.WriteMsg(res)
}

// Write writes buf, and records how much of it was written and the code of the message that it is. Msg stays as it is.
func (r *Recorder) Write(buf []byte) (int, error) {
	n, err := r.ResponseWriter.Write(buf)
	r.Len += n
	if m := new(dns.Msg); m.Unpack(buf) == nil {
		r.Rcode = m.Rcode
	}
	return n, err
}

// ConnectionState returns the TLS state of the client's connection, nil if it has none.
func (r *Recorder) ConnectionState() *tls.ConnectionState { return connectionState(r.ResponseWriter) }

// MultiRecorder is a Recorder for handlers that write several messages, such as zone transfers.
type MultiRecorder struct {
	// Len is the sum of the lengths of all that was written, as in Recorder.
	Len int
	// Msgs are the messages, in the order in which they were written.
	Msgs []*dns.Msg
	// Start is when the MultiRecorder was made.
	Start time.Time
	dns.ResponseWriter
}

// NewMultiRecorder returns a MultiRecorder for w, whose time starts now.
func NewMultiRecorder(w dns.ResponseWriter) *MultiRecorder {
	return &MultiRecorder{ResponseWriter: w, Start: time.Now()}
}

// WriteMsg records res, and then writes it.
func (r *MultiRecorder) WriteMsg(res *dns.Msg) error {
	r.Len += res.Len()
	r.Msgs = append(r.Msgs, res)
	return r.ResponseWriter.WriteMsg(res)
}

// Write writes buf and records how much of it was written.
func (r *MultiRecorder) Write(buf []byte) (int, error) {
	n, err := r.ResponseWriter.Write(buf)
	r.Len += n
	return n, err
}

// ConnectionState returns the TLS state of the client's connection, nil if it has none.
func (r *MultiRecorder) ConnectionState() *tls.ConnectionState {
	return connectionState(r.ResponseWriter)
}

func connectionState(w dns.ResponseWriter) *tls.ConnectionState {
	if stater, ok := w.(dns.ConnectionStater); ok {
		return stater.ConnectionState()
	}
	return nil
}
