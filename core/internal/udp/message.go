package udp

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// message is the writer of a query in the message lane, and its way back: one piece of memory, that a handler may keep.
type message struct {
	reply.Writer
	transport     *Transport
	path          returnPath
	decorated     dns.Writer       // what a decorator made of the way back, nil without one
	pathScratch   pathScratch      // of path
	remote, local wire.AddrScratch // of the writer's addresses
	began         int64            // when a worker began with it, for how long the first reply takes; 0: nobody asks
	wrote         atomic.Bool      // that is told
	worker        bool             // the handlers are called by a worker, which flushes when they have returned
}

// init makes m ready for use. It has its way back.
func (m *message) init(t *Transport) {
	m.transport = t
	m.Writer = reply.Writer{Sink: m, Finish: t.service.Finish}
	m.Client = reply.Client{Network: "udp", Remote: m.path.remote(&m.remote), Local: m.path.local(&m.local)}
	if t.Decorate != nil {
		m.decorated = t.Decorate(plainWriter{&m.Writer, m.path})
	}
}

// Send implements reply.Sink.
func (m *message) Send(b []byte) error {
	if m.began != 0 && m.wrote.CompareAndSwap(false, true) {
		m.transport.inline.Took(time.Duration(service.Now() - m.began))
	}
	if m.decorated != nil {
		_, err := m.decorated.Write(bytes.Clone(b)) // which it may keep, as it may with miekg/dns
		return err
	}
	if m.worker && m.path.later(b) {
		return nil
	}
	return m.path.write(b)
}

// Close and Hijack do nothing: there is no connection.
func (m *message) Close() error { return nil }
func (m *message) Hijack()      {}

// plainWriter is what decorators decorate: a writer that sends at once.
type plainWriter struct {
	*reply.Writer
	path returnPath
}

func (w plainWriter) Write(b []byte) (int, error) { return len(b), w.path.write(b) }

// heldMessage is a query in the message lane that is served without a worker.
type heldMessage struct {
	*message
	packet []byte
}

// hold lets packet i, which was taken last, be served when the batch is over.
func (l *loop) hold(i int, packet []byte) {
	m := new(message)
	m.path = l.path(i, &m.pathScratch)
	l.held = append(l.held, heldMessage{m, packet})
}

// serveHeld serves the messages that the batch holds. It reports false if another goroutine leads the loop
// meanwhile, as a handler has waited.
func (l *loop) serveHeld() (leads bool) {
	if len(l.held) == 0 {
		return true
	}
	l.sock.hold()
	l.lead.Arm()
	began := service.Now()
	for l.next < len(l.held) {
		m := l.held[l.next]
		// Forgotten before the call: who takes the loop over begins behind it, and the handler may keep the message.
		l.held[l.next] = heldMessage{}
		l.next++
		m.init(l.Transport)
		r, _ := exec.Receive(l.service, &m.Writer, m.packet, false)
		if r == nil {
			continue
		}
		if !l.lead.Call(l.service, &m.Writer, r) {
			return false
		}
		now := service.Now()
		l.inline.Took(time.Duration(now - began))
		began = now
	}
	l.lead.Disarm()
	l.held, l.next = l.held[:0], 0
	l.sock.sendHeld()
	return true
}
