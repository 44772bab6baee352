package dnsserver

import (
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// udpMessage is the writer of a query in the message lane, and its way back: one piece of memory, that a handler may keep.
type udpMessage struct {
	responder
	back          back
	writer        dns.Writer    // what a decorator made of the way back, nil without one
	backRoom      backRoom      // of back
	remote, local wire.AddrRoom // of the responder's addresses
}

// init makes m ready for use. It has its way back.
func (m *udpMessage) init(u *udpTransport) {
	m.responder = responder{
		out: m, server: u.server, network: "udp", remote: m.back.remote(&m.remote), local: m.back.local(&m.local),
	}
	if u.decorate != nil {
		m.writer = u.decorate(plainWriter{&m.responder, m.back})
	}
}

// send implements outlet.
func (m *udpMessage) send(b []byte) error {
	if m.writer != nil {
		_, err := m.writer.Write(b)
		return err
	}
	return m.back.write(b)
}

func (m *udpMessage) Close() error { return nil }
func (m *udpMessage) Hijack()      {}

// plainWriter is what decorators decorate: a writer that sends at once.
type plainWriter struct {
	*responder
	back back
}

func (w plainWriter) Write(b []byte) (int, error) { return len(b), w.back.write(b) }

// heldMessage is a query in the message lane that is served without a worker.
type heldMessage struct {
	*udpMessage
	packet []byte
}

// hold lets packet i, which was taken last, be served when the batch is over.
func (l *udpLoop) hold(i int, packet []byte) {
	m := new(udpMessage)
	m.back = l.back(i, &m.backRoom)
	l.held = append(l.held, heldMessage{m, packet})
}

// serveHeld serves the messages that the batch holds. It reports false if another goroutine leads the loop meanwhile, as
// a handler has waited.
func (l *udpLoop) serveHeld() (leads bool) {
	if len(l.held) == 0 {
		return true
	}
	l.sock.collect()
	var gained time.Duration
	began := sinceStart()
	for l.next < len(l.held) {
		m := l.held[l.next]
		l.held[l.next] = heldMessage{}
		l.next++
		m.init(l.udpTransport)
		r := l.server.receive(&m.responder, m.packet)
		if r == nil {
			continue
		}
		if !l.turn.call(l, &m.responder, r) {
			return false
		}
		now := sinceStart()
		gained += gain(time.Duration(now - began))
		began = now
	}
	l.held, l.next = l.held[:0], 0
	l.sock.sendCollected()
	l.server.tempo.add(gained)
	return true
}

func (l *udpLoop) base() *Server { return l.server }

// waits implements leader.
func (l *udpLoop) waits() bool {
	l.inflight.add()
	return true
}

// waited implements leader.
func (l *udpLoop) waited() { l.inflight.done() }

// leadOn implements leader.
func (l *udpLoop) leadOn() { go l.lead() }
