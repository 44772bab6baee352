package etcd

import (
	"context"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/memory"

	"golang.org/x/sync/semaphore"
)

// A name may have very many services below it, most of all that of a zone itself: a query for it takes as much memory
// as there are keys. Such queries take turns, so that those who ask for such names do not make the process take
// more memory than there is; queries for other names are not held up.
//
//	ServeDNS: withTurn ──▶ more than narrow keys: takeTurn ──▶ reads, answers ──▶ done

const (
	narrow = 64 // keys that a query may read without a turn

	leastRoom = 4096 // keys of all queries that have their turn
	mostRoom  = 1 << 20
	perKey    = 8 << 10 // octets of memory for each of them, an eighth of which a key takes while it is read
)

// room is for the keys of queries that have their turn, and how many that are.
var (
	room     = sync.OnceValue(func() *semaphore.Weighted { return semaphore.NewWeighted(roomSize()) })
	roomSize = sync.OnceValue(func() int64 { return roomFor(memory.Limit()) })
)

func roomFor(limit int64) int64 { return min(max(limit/perKey, leastRoom), mostRoom) }

// turnKey is the context key of a *turn.
type turnKey struct{}

// turn is what a query, and all that it leads to, has taken of the room. What it leads to may go on when it is over, as
// when cache asks again for what is nearly too old.
type turn struct {
	mu   sync.Mutex
	keys int64
	over bool
}

// withTurn is ctx for a query, which calls done in the end. One that a query leads to shares its turn.
func withTurn(ctx context.Context) (with context.Context, done func()) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok && t.lasts() {
		return ctx, func() {}
	}
	t := new(turn)
	return context.WithValue(ctx, turnKey{}, t), t.end
}

func (t *turn) lasts() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.over
}

// end gives back what was taken.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.keys > 0 {
		room().Release(t.keys)
	}
}

// needs reports whether t has no room yet. It does not wait for more than it has: others may wait for that.
func (t *turn) needs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys == 0 && !t.over
}

// takeTurn waits until there is room for so many keys.
func takeTurn(ctx context.Context, keys int) error {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok || !t.needs() {
		return nil
	}
	n := min(int64(keys), roomSize())
	if err := room().Acquire(ctx, n); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.keys > 0 {
		room().Release(n)
		return nil
	}
	t.keys = n
	return nil
}

// waitTurn is takeTurn for a query that does not wait for etcd: it may give way to others all the same.
func (e *Etcd) waitTurn(ctx context.Context, keys int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	ctx, done := e.patience.Wait(ctx)
	return done(takeTurn(ctx, keys))
}
