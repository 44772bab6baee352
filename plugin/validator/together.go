package validator

import (
	"context"
	"errors"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// Above a forwarder all who need the same keys at one time, as when the server has just started, have them asked for once:
// many queries for the same, each with a port and an identifier of its own, would be easier to forge (RFC 5452 §5), and the
// more work. A resolver below does so by itself.

// fetches are the DS and DNSKEY RRsets that are being asked for.
type fetches struct {
	mu    sync.Mutex
	open  map[validate.Question]*fetched
	waits eventloop.Patience // with those who ask
}

// fetched is what came of one.
type fetched struct {
	joined int           // how many wait
	over   chan struct{} // closed when the others may be read
	good   bool          // it is for all who wait: who asked has not given up for his own sake
	reply  *dns.Msg      // nil if nobody answered; only read
	took   string        // see way
}

// join is who asks for q now. The caller does if first is true, and has to call leave.
func (f *fetches) join(q validate.Question) (s *fetched, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s = f.open[q]; s != nil {
		s.joined++
		return s, false
	}
	if f.open == nil {
		f.open = map[validate.Question]*fetched{}
	}
	s = &fetched{over: make(chan struct{})}
	f.open[q] = s
	return s, true
}

// leave lets nobody join s any more, and reports whether somebody has.
func (f *fetches) leave(q validate.Question, s *fetched) (joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[q] == s {
		delete(f.open, q)
	}
	return s.joined > 0
}

// askTogether is ask for what others may need, too.
func (i *inquiry) askTogether(q validate.Question) *dns.Msg {
	if i.learner != nil || i.source(q).Again() || i.ctx.Value(forAll{}) != nil {
		reply, _, _ := i.ask(q, fetching(q))
		return reply
	}
	for i.ctx.Err() == nil {
		s, first := i.fetches.join(q)
		if first {
			return i.askForAll(q, s)
		}
		in, done := i.fetches.waits.Wait(i.ctx)
		var err error
		select {
		case <-s.over:
		case <-in.Done():
			err = in.Err()
		}
		if done(err) != nil {
			break
		}
		if s.good {
			if i.way(q).took = s.took; s.reply == nil {
				break
			}
			return s.reply.Copy()
		}
	}
	return nil
}

// forAll is the key in the context of who asks for all: what plugins below ask this server themselves, as for an alias, is
// not to wait for him.
type forAll struct{}

// askForAll asks, and lets those who wait know.
func (i *inquiry) askForAll(q validate.Question, s *fetched) *dns.Msg {
	defer close(s.over)
	defer i.fetches.leave(q, s)
	defer func(ctx context.Context) { i.ctx = ctx }(i.ctx)
	i.ctx = context.WithValue(i.ctx, forAll{}, true)
	reply, _, err := i.ask(q, fetching(q))
	if !i.fetches.leave(q, s) {
		return reply
	}
	s.took = i.way(q).took
	if s.good = reply != nil || i.ctx.Err() == nil && !errors.Is(err, eventloop.ErrGaveWay); reply != nil {
		s.reply = reply.Copy()
	}
	return reply
}
