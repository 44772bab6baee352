package cookie

import (
	"crypto/rand"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Ring holds the Keys that are in force.
type Ring struct {
	live   atomic.Pointer[dated] // never nil
	mu     sync.Mutex            // held by who replaces live
	random bool                  // a new secret is made each day
}

// dated is Keys with the time when they came into force, in seconds of Unix.
type dated struct {
	keys  Keys
	since uint32
}

// day is how long a random secret signs, in seconds. It is good for one day more, which is longer than any cookie.
const day = 24 * 60 * 60

// NewRing is a Ring with keys.
func NewRing(keys Keys) *Ring {
	r := new(Ring)
	r.live.Store(&dated{keys: keys})
	return r
}

// NewRandomRing is a Ring with a random secret, and a new one each day from now on, in seconds of Unix.
func NewRandomRing(now uint32) *Ring {
	r := &Ring{random: true}
	r.live.Store(&dated{Keys{randomSecret()}, now})
	return r
}

func randomSecret() (s Secret) {
	rand.Read(s[:]) // never fails
	return s
}

// Set puts other keys in force.
func (r *Ring) Set(keys Keys) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live.Store(&dated{keys: keys})
}

// Same reports whether other has the same keys in force now.
func (r *Ring) Same(other *Ring) bool {
	return slices.Equal(r.live.Load().keys, other.live.Load().keys)
}

// Judge is Keys.Judge with the keys that are in force.
func (r *Ring) Judge(option []byte, addr netip.Addr, now uint32) (wire.CookieState, [wire.CookieLen]byte) {
	d := r.live.Load()
	if r.random && d.isOver(now) {
		d = r.next(now)
	}
	return d.keys.Judge(option, addr, now)
}

// isOver reports whether a random secret has signed for a day. Clocks that go back do not count.
func (d *dated) isOver(now uint32) bool { return int32(now-d.since) >= day }

// next makes a new random secret, unless somebody else just has.
func (r *Ring) next(now uint32) *dated {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.live.Load()
	if d.isOver(now) {
		d = &dated{Keys{randomSecret(), d.keys[0]}, now}
		r.live.Store(d)
	}
	return d
}
