package reply

import (
	"crypto/tls"
	"net"

	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Sink is a transport's way back to one client. It may be used by several goroutines, and after the
// query that it was made for has been served.
type Sink interface {
	// Send sends one message. b is not kept.
	Send(b []byte) error
	// Close ends the connection, where there is one.
	Close() error
	// Hijack leaves the connection to the caller, where there is one.
	Hijack()
}

// Client is who asks, and how.
type Client struct {
	Network       string // udp, tcp, or "" for what miekg/dns does not know
	Remote, Local net.Addr
	Limit         int                  // of replies in octets; 0: the client's EDNS size
	TLS           *tls.ConnectionState // nil without TLS
}

// size is how long a reply may be for who asked with an OPT record, nil if there was none.
func (c *Client) size(asked *dns.OPT) int {
	if c.Limit > 0 {
		return c.Limit
	}
	if asked == nil {
		return dns.MinMsgSize
	}
	return min(int(edns.Size("udp", asked.UDPSize())), wire.MaxUDP)
}

// Writer is the dns.ResponseWriter of a query that a transport of ours received.
// There is one for each query, so that handlers may keep it.
type Writer struct {
	Sink
	Client
	Finish *Finisher // nil adds nothing
	Signature
}

// LocalAddr is the address that the query was sent to, RemoteAddr the client's, Network how it came.
func (w *Writer) LocalAddr() net.Addr  { return w.Local }
func (w *Writer) RemoteAddr() net.Addr { return w.Remote }
func (w *Writer) Network() string      { return w.Client.Network }

// ConnectionState is the TLS state of the query's connection, nil without TLS.
func (w *Writer) ConnectionState() *tls.ConnectionState { return w.TLS }

// Peer is who asks, as the wire lane has it.
func (w *Writer) Peer() wire.Peer {
	p := wire.PeerOf(w.Remote, w.Local)
	p.Limit = uint16(w.Limit)
	return p
}

// Verify checks the signature of the query r, which came as packet (RFC 8945 §5.2).
func (w *Writer) Verify(packet []byte, r *dns.Msg) { w.Finish.Verify(&w.Signature, packet, r) }

// Write sends b as it is.
func (w *Writer) Write(b []byte) (int, error) { return len(b), w.Send(b) }

// WriteMsg packs m as it is and sends it, signed if it has a TSIG record.
func (w *Writer) WriteMsg(m *dns.Msg) error {
	b, err := w.Pack(m)
	if err != nil {
		return err
	}
	return w.Send(b)
}

// WriteFit makes m, a reply to req, fit the client and sends it. m gets TC if the client does; else it
// is not changed, unless it is one of the rare kinds that only miekg/dns can pack.
func (w *Writer) WriteFit(m, req *dns.Msg) error {
	done, err := w.Finish.Msg(m, req, &w.Client, w.Sink)
	if done {
		return err
	}
	w.Finish.FitMsg(m, req, w, wire.AddrOf(w.Remote))
	return w.WriteMsg(m)
}

// WriteTaken is WriteFit for a reply that lies in an adapter, and whose plugin was given req.
func (w *Writer) WriteTaken(reply *wire.Reply, req *dns.Msg) error {
	return w.Send(w.Finish.Taken(reply, req, &w.Client))
}
