package udp

import (
	"sync"
	"time"

	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// source is where one datagram came from. It implements exec.Source.
type source struct {
	loop        *loop
	path        returnPath
	pathScratch pathScratch // of path
	kept        bool        // the message lane has seen path: a handler may keep it
	waiting     exec.Waiting
}

var sources = sync.Pool{New: func() any { return new(source) }}

// source is where packet i, which was taken last, came from.
func (l *loop) source(i int) *source {
	o := sources.Get().(*source)
	o.loop, o.kept = l, false
	o.path = l.path(i, &o.pathScratch)
	return o
}

// Begin implements exec.Source.
func (o *source) Begin(*service.Service) { o.loop.inflight.Add() }

// Scratch implements exec.Source.
func (o *source) Scratch() *exec.Waiting { return &o.waiting }

// End is the last that o is asked; unless it is kept it is used again.
func (o *source) End(*service.Service) {
	l := o.loop
	if !o.kept {
		o.loop, o.path = nil, nil
		sources.Put(o)
	}
	l.inflight.Done()
}

// Reply implements exec.Source.
func (o *source) Reply(b []byte, _ bool) { o.path.write(b) }

// ReplyIn sends b when the batch of loop is over.
func (o *source) ReplyIn(loop *eventloop.Loop, b []byte) {
	if !o.path.queue(b, loop) {
		o.path.write(b)
	}
}

// ServeMessage implements exec.Source. It notes whether a worker was needed: what handlers do until they write counts.
func (o *source) ServeMessage(s *service.Service, packet []byte) {
	o.kept = true
	m := &message{path: o.path, worker: true}
	m.init(o.loop.Transport)
	m.began = service.Now()
	exec.ServeMessage(s, &m.Writer, packet, nil)
	// What handlers did when they had written, such as to count, is done: who has the reply finds it.
	o.path.flush()
	if !m.wrote.Load() {
		o.loop.inline.Took(time.Duration(service.Now() - m.began))
	}
}
