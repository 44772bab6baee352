package proxy

import (
	"bytes"
	"context"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// workerPool is the goroutines that wait for a library, which has no asynchronous side: as many as queries are
// under way, each of them for many queries.
type workerPool struct {
	jobs    chan *Exchange // as long as there may be workers
	idle    int
	workers int
	owed    int       // jobs that wait for the worker of one that was given up
	givers  giverList // whether they say GivesWay or not
}

const (
	maxWorkers = 1024
	idleWorker = 10 * time.Second
)

// askByWorker gives x to a worker.
func (e *engine) askByWorker(x *Exchange) {
	if x.Proto = "tcp"; e.proxy.protocol != transport.HTTPS {
		x.Proto = "udp"
	}
	p := &e.workers
	e.mu.Lock()
	var err error
	full := p.workers == maxWorkers && p.idle == 0
	switch {
	case e.stopped:
		err = errStopped
	case full && (len(p.jobs) == maxWorkers || !p.giveUp(e.now()-int64(e.usual.Patience()))):
		err = ErrBusy
	}
	if err != nil {
		e.unlock()
		e.end(x, err)
		return
	}
	if p.jobs == nil {
		p.jobs = make(chan *Exchange, maxWorkers)
	}
	ctx, cancel := context.WithCancelCause(e.ctx)
	x.cancel = cancel
	j := job{e, x, ctx}
	switch {
	case full:
		p.owed++
	case p.idle > 0:
		p.idle--
	default:
		p.workers++
		e.running.Go(e.work)
	}
	x.on = j
	if !stays(x) {
		p.givers.add(x)
	}
	p.jobs <- x
	e.unlock()
}

// work asks, one query after the other, until there is nothing to do for a while.
func (e *engine) work() {
	p := &e.workers
	patience := time.NewTimer(idleWorker)
	defer patience.Stop()
	for {
		select {
		case x := <-p.jobs:
			e.mu.Lock()
			j := x.on.(job)
			e.unlock()
			j.run()
			patience.Reset(idleWorker)
		case <-patience.C:
			if e.leaveWork() {
				return
			}
			patience.Reset(idleWorker)
		case <-e.ctx.Done():
			if e.leaveWork() {
				return
			}
		}
	}
}

// leaveWork takes an idle worker off the list. It reports false if a job was given to it just now.
func (e *engine) leaveWork() bool {
	e.mu.Lock()
	defer e.unlock()
	if e.workers.idle == 0 {
		return false
	}
	e.workers.idle--
	e.workers.workers--
	return true
}

// job is one exchange that a worker waits for.
type job struct {
	engine *engine
	x      *Exchange
	ctx    context.Context
}

func (job) late(*Exchange) error  { return context.DeadlineExceeded } // never asked: the context has the deadline
func (job) drop(*Exchange, int64) {}

func (j job) run() {
	e, x := j.engine, j.x
	wait := min(int64(x.Timeout), x.deadline-e.now())
	ctx, cancel := context.WithTimeout(j.ctx, time.Duration(wait))
	defer cancel()
	var buf bytes.Buffer
	err := e.proxy.roundTrip(ctx, x, &buf)
	if cause := context.Cause(j.ctx); err != nil && cause != nil {
		err = cause
	}
	e.mu.Lock()
	x.cancel(nil)
	x.on, x.cancel = nil, nil
	e.workers.ended(x)
	e.unlock()
	e.end(x, err)
}

// giveUp ends the job that has waited longest, if it began before a time, for one that has just come.
func (p *workerPool) giveUp(before int64) bool {
	x := p.givers.oldest(before, nil)
	if x == nil {
		return false
	}
	p.givers.remove(x)
	x.cancel(ErrGaveWay)
	return true
}

// ended is told that a worker is done with x, and free for another job.
func (p *workerPool) ended(x *Exchange) {
	p.givers.remove(x)
	if p.owed > 0 {
		p.owed--
		return
	}
	p.idle++
}
