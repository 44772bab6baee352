package proxy

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quic-go/quic-go"
)

// After an error of the socket on which QUIC is spoken, the next query is asked on another one.
func TestQUICSocketFails(t *testing.T) {
	server, roots := authority(t)
	overQUIC := quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) { streams(conn, echoStream) }), roots)
	overHTTP := http3Upstream(t, nil, func(*quic.Conn) {}, answerHTTP)
	for range 3 {
		for _, p := range []*Proxy{overQUIC, overHTTP} {
			if m, err := ask(p, "www.example.org.", Options{}); err != nil || len(m.Answer) != 1 {
				t.Errorf("%s: %v %v", p.Protocol(), m, err)
			}
			q := &p.engine.quic
			q.mu.Lock()
			if q.transport == nil {
				t.Fatal("there is no socket")
			}
			q.transport.Conn.Close()
			q.mu.Unlock()
		}
	}
}

// unwilling is a socket on which sending fails once each time that it refuses.
type unwilling struct {
	net.PacketConn
	refuses atomic.Bool
}

func (u *unwilling) WriteTo(b []byte, to net.Addr) (int, error) {
	if u.refuses.CompareAndSwap(true, false) {
		return 0, &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("sendmsg", syscall.ENOBUFS)}
	}
	return u.PacketConn.WriteTo(b, to)
}

// A datagram that the system does not send ends a connection; the query is asked on another one.
func TestQUICSendFails(t *testing.T) {
	server, roots := authority(t)
	overQUIC := quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) { streams(conn, echoStream) }), roots)
	overHTTP := http3Upstream(t, nil, func(*quic.Conn) {}, answerHTTP)
	for _, p := range []*Proxy{overQUIC, overHTTP} {
		way, _, err := p.engine.quic.way()
		if err != nil {
			t.Fatal(err)
		}
		u := &unwilling{PacketConn: way.Conn}
		way.Conn = u
		for i := range 3 {
			if m, err := ask(p, "www.example.org.", Options{}); err != nil || len(m.Answer) != 1 {
				t.Errorf("%s: query %d: %v %v", p.Protocol(), i, m, err)
			}
			if u.refuses.Swap(true) {
				t.Errorf("%s: query %d: all was sent", p.Protocol(), i)
			}
		}
	}
}
