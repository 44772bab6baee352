package proxy

import (
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
