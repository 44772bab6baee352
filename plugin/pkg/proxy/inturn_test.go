package proxy

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// What replies tell of whether an upstream takes the queries of a connection in turn.
func TestTurns(t *testing.T) {
	const ms = int64(time.Millisecond)
	type reply struct{ sent, came int64 } // of a query, in ms
	series := func(n int, f func(i int64) reply) (all []reply) {
		for i := range n {
			all = append(all, f(int64(i)))
		}
		return all
	}
	inTurn := func(i int64) reply { return reply{10, 110 + 100*i} }
	for name, c := range map[string]struct {
		replies []reply
		width   int
	}{
		"in turn":              {series(2+turnsEnough, inTurn), maxStreams},
		"not often enough":     {series(1+turnsEnough, inTurn), 0},
		"for longer":           {series(2+2*turnsEnough, inTurn), 3 * maxStreams},
		"for good":             {series(100*turnsEnough, func(i int64) reply { return reply{i, 10 + 12*i} }), maxWidth},
		"overtaken":            {append(series(40, inTurn), reply{5, 5000}), 0},
		"far, and steady":      {series(100, func(i int64) reply { return reply{10 * i, 10*i + 150} }), 0},
		"far, and held up":     {series(100, func(i int64) reply { return reply{10 * i, 10*i + 150 + 20*(i/7%5)} }), 0},
		"waits for no other":   {series(100, func(i int64) reply { return reply{200 * i, 200*i + 150} }), 0},
		"quick":                {series(100, func(i int64) reply { return reply{i, 10 + 9*i} }), 0},
		"held up now and then": {series(100, func(i int64) reply { return reply{100*(i/2) + i%2, 100*(i/2) + 20 + 20*(i%2)} }), 0},
		"asked as rarely":      {series(100, func(i int64) reply { return reply{60 * i, 10 + 100*i} }), 0},
		"now and then in turn": {series(100, func(i int64) reply { return reply{5000*(i/2) + i%2, 5000*(i/2) + 50 + 50*(i%2)} }), 0},
		"three now and then":   {series(100, func(i int64) reply { return reply{5000*(i/3) + i%3, 5000*(i/3) + 50 + 50*(i%3)} }), 0},
	} {
		pool, conn := &streamPool{}, &streamConn{open: true}
		before := int64(0)
		for _, r := range c.replies {
			pool.turns.note(conn, &Exchange{sent: r.sent*ms + 1}, before, r.came*ms)
			before = r.came * ms
		}
		if pool.turns.width != c.width {
			t.Errorf("%s: %d connections more, want %d", name, pool.turns.width, c.width)
		}
	}
}

// An upstream that stands still now and then has all connections wait at the same time: it gets no more of them.
func TestTurnsOfAnUpstreamThatStandsStill(t *testing.T) {
	const ms = int64(time.Millisecond)
	pool, conns := &streamPool{}, []*streamConn{}
	for range maxStreams + spareStreams {
		conns = append(conns, &streamConn{open: true})
	}
	before := int64(0)
	for sent := int64(10); sent < 60_000; sent += 10 {
		came := sent + 50
		if second := sent / 1000 % 5; second == 4 {
			came = sent/1000*1000 + 1050
		}
		for _, c := range conns {
			pool.turns.note(c, &Exchange{sent: sent * ms}, before, came*ms)
		}
		if before = came * ms; pool.turns.width > 0 {
			t.Fatalf("%d connections more after %d ms", pool.turns.width, came)
		}
	}
}

// An upstream that does not answer on one more connection has as many as it answered on, and is not given yet more of
// them; but if it stood still, that tells nothing of how many it takes.
func TestTurnsTooMany(t *testing.T) {
	conn, now := &streamConn{open: true}, int64(time.Hour)
	turns := turns{width: 28, most: 20, heard: now}
	turns.tooMany(&streamConn{open: true}, &Exchange{sent: now}, now+1)
	if turns.width != 28 {
		t.Errorf("%d connections more, as it stood still", turns.width)
	}
	mute := &streamConn{open: true}
	for range 3 {
		turns.tooMany(mute, &Exchange{sent: now - 1}, now)
	}
	turns.tooMany(&streamConn{open: true, answered: 1}, &Exchange{sent: now - 1}, now)
	for i := range int64(40) {
		sent := now + i
		turns.note(conn, &Exchange{sent: sent}, now+i*turnGap*2, now+(i+1)*turnGap*2)
	}
	if turns.width != 20-maxStreams {
		t.Errorf("%d connections more", turns.width)
	}
	turns.heard = turns.full
	turns.tooMany(mute, &Exchange{sent: turns.full - 1}, turns.full)
	if turns.width != 18-maxStreams {
		t.Errorf("later: %d connections more", turns.width)
	}
}

// An upstream that takes the queries of a connection in turn answers all of them in time.
func TestUpstreamThatTakesQueriesInTurn(t *testing.T) {
	var conns atomic.Int64
	addr := tcpUpstream(t, func(conn net.Conn) {
		conns.Add(1)
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
			conn.Write(frame(replyTo(q)))
		}
	})
	p := proxyTo(t, addr, transport.DNS)
	p.SetReadTimeout(time.Minute)
	var asked sync.WaitGroup
	for i := range 64 {
		asked.Go(func() {
			for j := range 10 {
				if _, err := ask(p, fmt.Sprintf("q%d-%d.example.org.", i, j), overTCP); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asked.Wait()
	if n := conns.Load(); n <= maxStreams+spareStreams {
		t.Errorf("%d connections", n)
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	if n := p.engine.streams.turns.most; n <= maxStreams {
		t.Errorf("%d have brought a reply", n)
	}
}
