package proxy

import (
	"context"
	"errors"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/eventloop"

	"github.com/quic-go/quic-go"
)

// This file is about upstreams that take few streams of a connection at one time (RFC 9000 §4.6). Where queries wait
// for that, though the upstream answers others, another connection is opened.

// maxQUICLinks is how many connections an upstream has at most that takes too few streams on each.
const maxQUICLinks = 16

// stream is a stream of l, or of another connection if one is to be had sooner. Who has waited so long that queries
// begin to give way to others has one more opened.
func (q *quicPool) stream(ctx context.Context, l *quicLink) (*quicLink, *quic.Stream, error) {
	s, err := l.OpenStream()
	if !few(err) {
		return l, s, err
	}
	for late := false; ; late = true {
		if l, s = q.elsewhere(l, late); s != nil {
			return l, s, nil
		}
		if l.isAway() {
			return l, nil, errNotTaken
		}
		turn, cancel := context.WithTimeout(ctx, eventloop.LeastPatience)
		s, err = l.OpenStreamSync(turn)
		over := turn.Err() == nil || ctx.Err() != nil
		cancel()
		if err == nil || over {
			return l, s, err
		}
	}
}

// elsewhere is where a query of l gets a stream at once. If that is nowhere, s is nil, and the query is to wait where
// fewest do. If it is late and the upstream is not silent, one more connection is opened.
func (q *quicPool) elsewhere(l *quicLink, late bool) (to *quicLink, s *quic.Stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, patience := q.engine.now(), q.engine.usual.Patience()
	answers, fresh := false, false
	l.users-- // but l is not closed meanwhile
	to = l
	for _, k := range slices.Clone(q.links) {
		if k.silence.Longer(patience, now) {
			continue
		}
		stream, err := k.OpenStream()
		if err != nil && !few(err) {
			q.forget(k, now)
			continue
		}
		if answers = true; err == nil {
			to, s = k, stream
			break
		}
		if k.users < to.users {
			to = k
		}
		fresh = fresh || k.heard == k.began && now-k.began < int64(eventloop.LeastPatience) // and may be one too many
	}
	if s == nil && late && answers && !fresh && len(q.links) < maxQUICLinks && q.dialling == nil && now >= q.shut {
		q.begin()
	}
	l.users++
	to.users++
	q.left(l)
	return to, s
}

// few reports whether err is that a connection has no stream now.
func few(err error) bool {
	var limit *quic.StreamLimitReachedError
	return errors.As(err, &limit)
}
