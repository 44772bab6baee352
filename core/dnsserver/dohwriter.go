package dnsserver

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// DoHWriter is the dns.ResponseWriter of a query that came over HTTP. It keeps the
// last message that was written, for the HTTP response.
type DoHWriter struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	server       *Server
	packed       []byte // Msg as it goes out, nil if it still must be packed
	raddr, laddr net.Addr
	request      *http.Request
	signature
}

// WriteMsg keeps m.
func (d *DoHWriter) WriteMsg(m *dns.Msg) error {
	d.Msg, d.packed = m, nil
	return nil
}

// writeFit keeps m, a reply to req. Nothing is cut, as HTTP carries any length.
func (d *DoHWriter) writeFit(m, req *dns.Msg) error {
	r := &responder{out: keeper{d, m}, server: d.server, remote: d.raddr, local: d.laddr, limit: dns.MaxMsgSize, tls: d.ConnectionState(), signature: d.signature}
	return r.writeFit(m, req)
}

// keeper keeps a message with its packed form.
type keeper struct {
	*DoHWriter
	m *dns.Msg
}

func (k keeper) send(b []byte) error {
	k.Msg = k.m
	return k.DoHWriter.send(b)
}

// send keeps a reply that is packed.
func (d *DoHWriter) send(b []byte) error {
	d.packed = append([]byte(nil), b...)
	return nil
}

// Write keeps the message that b holds.
func (d *DoHWriter) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		return 0, err
	}
	d.Msg = m
	return len(b), d.send(b)
}

func (d *DoHWriter) peer() wire.Peer {
	p := wire.PeerOf(d.raddr, d.laddr)
	p.Limit = wire.MaxMessage
	return p
}

func (d *DoHWriter) verify(packet []byte, r *dns.Msg) { d.check(d.server, packet, r) }

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

// TsigStatus is nil if the query is not signed, or well.
func (d *DoHWriter) TsigStatus() error { return d.signature.TsigStatus() }

// TsigTimersOnly is for the second and further messages of a transfer, which HTTP does not carry.
func (d *DoHWriter) TsigTimersOnly(on bool) { d.signature.TsigTimersOnly(on) }

// Close and Hijack do nothing: the connection is not the query's.
func (d *DoHWriter) Close() error { return nil }
func (d *DoHWriter) Hijack()      {}
