package grpc

import (
	"context"
	"sync"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/eventloop"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// links are the connections to one upstream: one, and a second one while the first one is silent. That may be dead, for
// a router on the way can forget a connection without a word. One that does not come about makes room for others.
type links struct {
	dial  func() (*grpc.ClientConn, error) // which does not wait
	usual eventloop.Usual

	mu      sync.Mutex
	live    []*link       // at least one, the oldest first
	added   time.Duration // when the last one came
	stopped bool
}

const (
	maxLinks = 2           // beside those on which nothing has come for too long, which no query outlives
	slowDial = time.Second // a connection that is not there by then may never be

	toldSoon = 50 * time.Millisecond

	unusedTime = 10 * time.Second // after which one is closed that others have replaced
)

// link is one connection, which is opened anew whenever it is lost.
type link struct {
	conn   *grpc.ClientConn
	client pb.DnsServiceClient

	// Guarded by the lock of links.
	users   int
	used    time.Duration // when it got a query last
	silence eventloop.Silence
}

// epoch is when the time begins that silence is told in.
var epoch = time.Now()

// add opens one more. l.mu is held, or nobody else has l.
func (l *links) add(now time.Duration) error {
	conn, err := l.dial()
	if err == nil {
		l.added = now
		l.live = append(l.live, &link{conn: conn, client: pb.NewDnsServiceClient(conn)})
	}
	return err
}

// ask asks for packet on the oldest connection that is not silent. If there is none, and no other one can be opened, as
// the upstream allows so many only, it does so on a silent one. What was asked on a connection that is lost is asked
// once more.
func (l *links) ask(ctx context.Context, packet []byte) (*pb.DnsPacket, error) {
	k, asked := l.take()
	open := k.conn.GetState() == connectivity.Ready
	reply, err := l.askOn(ctx, packet, k, asked)
	if err == nil || ctx.Err() != nil {
		return reply, err
	}
	switch {
	case open && status.Code(err) == codes.Unavailable && k.lost(ctx):
		if k, asked = l.instead(); k == nil {
			k, asked = l.take()
		}
	case !open && k.conn.GetState() != connectivity.Ready:
		k, asked = l.instead()
	default:
		return reply, err
	}
	if k == nil {
		return reply, err
	}
	return l.askOn(ctx, packet, k, asked)
}

// lost reports whether the connection, which was open, has been lost, so that nobody has answered what was asked. That is
// told a moment after the queries have failed.
func (l *link) lost(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, toldSoon)
	defer cancel()
	return l.conn.WaitForStateChange(ctx, connectivity.Ready)
}

// askOn is ask on k, which take or instead gave at a time.
func (l *links) askOn(ctx context.Context, packet []byte, k *link, asked time.Duration) (*pb.DnsPacket, error) {
	reply, err := k.client.Query(ctx, &pb.DnsPacket{Msg: packet})
	now := time.Since(epoch)
	if err == nil {
		l.usual.Note(now - asked)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k.users--
	k.silence.Done(int64(asked), int64(now), l.usual.Patience())
	if err == nil || ctx.Err() == nil || k.conn.GetState() != connectivity.Ready { // without a connection nobody was asked
		k.silence.Heard(int64(now))
	}
	return reply, err
}

// take is a connection with one user more, and the time.
func (l *links) take() (k *link, now time.Duration) {
	now = time.Since(epoch)
	l.mu.Lock()
	k, unused := l.choose(now)
	k.add(now)
	l.mu.Unlock()
	for _, c := range unused {
		c.conn.Close()
	}
	return k, now
}

// instead is a connection that is open, and not dead, with one user more, and the time; nil if there is none.
func (l *links) instead() (k *link, now time.Duration) {
	now = time.Since(epoch)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.live {
		state := c.conn.GetState()
		if _, dead := c.silent(state, l.usual.Patience(), now); state == connectivity.Ready && !dead {
			c.add(now)
			return c, now
		}
	}
	return nil, now
}

// add counts one more user. The lock of links is held.
func (l *link) add(now time.Duration) {
	l.users++
	l.used = now
	l.silence.Ask(int64(now))
}

// choose is the connection for one more query, and which are to be closed, as nobody waits on them and they are silent, or
// not needed. It is the oldest that is open and not silent, or one that is about to be. While the upstream is known to
// be away queries fail at once, so that the next one is asked, but for one in a second, which tries. l.mu is held.
func (l *links) choose(now time.Duration) (k *link, unused []*link) {
	usual, places := l.usual.Patience(), maxLinks
	all := l.live
	l.live = nil
	var coming, away *link
	for _, c := range all {
		state := c.conn.GetState()
		silent, dead := c.silent(state, usual, now)
		failed := state == connectivity.TransientFailure
		// Of those that are away one is enough, which says so to queries.
		if c.users == 0 && !l.stopped && (silent || failed && away != nil || k != nil && now-c.used > unusedTime) {
			unused = append(unused, c)
			continue
		}
		l.live = append(l.live, c)
		switch {
		case silent:
		case failed:
			away = c
		case state == connectivity.Connecting:
			coming = c
		case k == nil:
			k = c
		}
		if !dead {
			places--
		}
	}
	// Without one that is open, the next best is chosen.
	switch {
	case k != nil:
	case l.stopped, away != nil && now-l.added <= slowDial:
		k = away
	case away == nil && coming != nil:
		k = coming
	case places > 0 && l.add(now) != nil && len(l.live) == 0:
		l.live, unused = unused, nil
	}
	if k == nil {
		k = l.live[len(l.live)-1]
	}
	return k, unused
}

// silent reports whether l, whose state is known, gets no query while there is another one, and whether it holds no place.
func (l *link) silent(state connectivity.State, usual, now time.Duration) (silent, dead bool) {
	switch state {
	case connectivity.Ready:
		return l.silence.Longer(usual, int64(now)), l.silence.Longer(max(usual, patience), int64(now))
	case connectivity.Connecting:
		silent = l.silence.Longer(slowDial, int64(now))
	}
	return silent, silent || state == connectivity.TransientFailure
}

// stop closes all.
func (l *links) stop() (err error) {
	l.mu.Lock()
	l.stopped = true
	all := l.live
	l.mu.Unlock()
	for _, k := range all {
		if e := k.conn.Close(); e != nil {
			err = e
		}
	}
	return err
}
