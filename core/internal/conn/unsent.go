package conn

import (
	"errors"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

// unsent counts the octets that wait for clients, in all connections of the process.
var unsent = func() *ledger {
	l := new(ledger)
	l.max.Store(memory.MaxUnsent)
	return l
}()

// ErrUnsent says that too many octets wait for clients.
var ErrUnsent = errors.New("too many replies wait for clients that do not read them")

// SetMaxUnsent changes how many octets of replies may wait for clients, 0 is any number.
func SetMaxUnsent(n int) { unsent.max.Store(int64(n)) }

// Take enters n octets of a reply that waits for its client, until Give. It reports false if they are too many.
func Take(n int) bool { return unsent.take(n) }

// Give takes out n octets that Take has entered.
func Give(n int) { unsent.give(n) }

// Unsent is how many octets wait for clients.
func Unsent() int64 { return unsent.n.Load() }

type ledger struct{ n, max atomic.Int64 } // max 0 is any number

func (l *ledger) take(n int) bool {
	if most := l.max.Load(); l.n.Add(int64(n)) > most && most > 0 && n > 0 {
		l.n.Add(int64(-n))
		return false
	}
	return true
}

func (l *ledger) give(n int) { l.n.Add(int64(-n)) }
