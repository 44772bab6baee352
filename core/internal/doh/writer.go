package doh

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Writer is the dns.ResponseWriter of a query that came over HTTP. It keeps the
// last message that was written, for the HTTP response. A plugin may write when ServeDNS has returned, and so the
// response may be under way; that is too late.
type Writer struct {
	// Msg is the message that was written last, nil if none was.
	Msg *dns.Msg

	service      *service.Service
	mu           sync.Mutex // guards Msg and packed while plugins may write
	packed       []byte     // Msg as it goes out, nil if it still must be packed
	raddr, laddr net.Addr
	request      *http.Request
	reply.Signature
}

// WriteMsg keeps m.
func (d *Writer) WriteMsg(m *dns.Msg) error { return d.keep(m, nil) }

// keep keeps m, and as what it goes out.
func (d *Writer) keep(m *dns.Msg, packed []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Msg, d.packed = m, packed
	return nil
}

// kept is what was kept last.
func (d *Writer) kept() (*dns.Msg, []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Msg, d.packed
}

// WriteFit keeps m, a reply to req. Nothing is cut, as HTTP carries any length.
func (d *Writer) WriteFit(m, req *dns.Msg) error {
	w := &reply.Writer{Sink: keeper{d, m}, Finish: d.finisher(), Signature: d.Signature}
	w.Client = reply.Client{Remote: d.raddr, Local: d.laddr, Limit: dns.MaxMsgSize, TLS: d.ConnectionState()}
	return w.WriteFit(m, req)
}

// finisher is that of the server, nil where there is none.
func (d *Writer) finisher() *reply.Finisher {
	if d.service == nil {
		return nil
	}
	return d.service.Finish
}

// keeper keeps a message with its packed form.
type keeper struct {
	*Writer
	m *dns.Msg
}

// Send implements reply.Sink.
func (k keeper) Send(b []byte) error { return k.keep(k.m, bytes.Clone(b)) }

// Send keeps a reply that is packed.
func (d *Writer) Send(b []byte) error { return d.keep(nil, bytes.Clone(b)) }

// Write keeps the message that b holds, and b as its packed form: it goes out as it is.
func (d *Writer) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if err := wire.UnpackInto(m, b); err != nil {
		return 0, err
	}
	return len(b), d.keep(m, bytes.Clone(b))
}

// Peer implements exec.QueryWriter.
func (d *Writer) Peer() wire.Peer {
	p := wire.PeerOf(d.raddr, d.laddr)
	p.Limit = wire.MaxMessage
	return p
}

// Verify checks the signature of the query r, which came as packet (RFC 8945 §5.2).
func (d *Writer) Verify(packet []byte, r *dns.Msg) { d.finisher().Verify(&d.Signature, packet, r) }

// RemoteAddr is the client's address; LocalAddr, the address that the request was sent to.
func (d *Writer) RemoteAddr() net.Addr { return d.raddr }
func (d *Writer) LocalAddr() net.Addr  { return d.laddr }

// Network is "" as HTTP is neither of the transports that miekg/dns knows.
func (d *Writer) Network() string { return "" }

// Request is the HTTP request that brought the query.
func (d *Writer) Request() *http.Request { return d.request }

// ConnectionState is the TLS state of the request's connection, nil without TLS.
func (d *Writer) ConnectionState() *tls.ConnectionState {
	// Made by hand, as tests of plugins do.
	if d.request == nil {
		return nil
	}
	return d.request.TLS
}

// TsigStatus is nil if the query is not signed, or well.
func (d *Writer) TsigStatus() error { return d.Signature.TsigStatus() }

// TsigTimersOnly is for the second and further messages of a transfer, which HTTP does not carry.
func (d *Writer) TsigTimersOnly(on bool) { d.Signature.TsigTimersOnly(on) }

// Close and Hijack do nothing: the connection is not the query's.
func (d *Writer) Close() error { return nil }
func (d *Writer) Hijack()      {}
