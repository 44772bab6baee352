package dnsserver

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/miekg/dns"
)

// DoHWriter is the dns.ResponseWriter of a query that came over HTTP. It keeps the
// last message that was written, for the HTTP response.
type DoHWriter struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	packed       []byte // Msg as it goes out, nil if it still must be packed
	raddr, laddr net.Addr
	request      *http.Request
}

// WriteMsg keeps m.
func (d *DoHWriter) WriteMsg(m *dns.Msg) error {
	d.Msg, d.packed = m, nil
	return nil
}

// writeFit keeps m, a reply to req. Nothing is cut, as HTTP carries any length.
func (d *DoHWriter) writeFit(m, req *dns.Msg) error {
	r := &responder{out: keeper{d, m}, remote: d.raddr, local: d.laddr, limit: dns.MaxMsgSize, tls: d.ConnectionState()}
	return r.writeFit(m, req)
}

// keeper keeps a message with its packed form.
type keeper struct {
	*DoHWriter
	m *dns.Msg
}

func (k keeper) send(b []byte) error {
	k.Msg, k.packed = k.m, append([]byte(nil), b...)
	return nil
}

// Write keeps the message that b holds.
func (d *DoHWriter) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, err
	}
	d.Msg, d.packed = m, nil
	return len(b), nil
}

// RemoteAddr is the client's address; LocalAddr, the address that the request was sent to.
func (d *DoHWriter) RemoteAddr() net.Addr { return d.raddr }
func (d *DoHWriter) LocalAddr() net.Addr  { return d.laddr }

// Network is "" as HTTP is neither of the transports that miekg/dns knows.
func (d *DoHWriter) Network() string { return "" }

// Request is the HTTP request that brought the query.
func (d *DoHWriter) Request() *http.Request { return d.request }

// ConnectionState is the TLS state of the request's connection, nil without TLS.
func (d *DoHWriter) ConnectionState() *tls.ConnectionState {
	if d.request == nil {
		return nil
	}
	return d.request.TLS
}

// Close, Hijack and TsigTimersOnly do nothing; TsigStatus is nil: signatures do not go over HTTP.
func (d *DoHWriter) Close() error          { return nil }
func (d *DoHWriter) Hijack()               {}
func (d *DoHWriter) TsigStatus() error     { return nil }
func (d *DoHWriter) TsigTimersOnly(_ bool) {}
