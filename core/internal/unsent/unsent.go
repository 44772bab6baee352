// Package unsent counts the octets of replies that wait for clients, in all connections of the process, and bounds
// them. A client that asks and does not read would have them grow otherwise; nor does it keep places from queries for
// long. Start at Take; then Hold.
package unsent

import (
	"errors"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/memory"
)

var octets, most atomic.Int64

func init() { most.Store(memory.MaxUnsent) }

// Err says that too many octets wait for clients.
var Err = errors.New("too many replies wait for clients that do not read them")

// SetMax changes how many octets may wait, 0 is any number.
func SetMax(n int) { most.Store(int64(n)) }

// Little is the octets up to which the last quarter of the room is for a connection: those who do not read cannot have
// it all with a few connections, which would have the replies of all others refused.
const Little = 16 << 10

// Take enters n octets, until Give, for a connection for which held were entered before. It reports false, and enters
// none, if they are too many.
func Take(held, n int) bool {
	most, now := most.Load(), octets.Add(int64(n))
	if most <= 0 || n <= 0 || now <= most-most/4 || now <= most && held+n <= Little {
		return true
	}
	octets.Add(int64(-n))
	return false
}

// Give takes out n octets that Take has entered.
func Give(n int) { octets.Add(int64(-n)) }

// Octets is how many wait.
func Octets() int64 { return octets.Load() }
