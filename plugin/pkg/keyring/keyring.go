// Package keyring holds TSIG keys (RFC 8945) by their names, so that they can be replaced while they are used.
//
//	files ──plugin tsig──Set──▶ Ring ──Key──▶ listeners, secondaries, notifications
//
// Who uses a key asks for it each time, and keeps it for one exchange only. Verify checks what it has signed. The
// package reads no files, and makes no signatures. A Ring may be used by any number of goroutines; a nil one has no
// keys. Start at Ring.
package keyring

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// Key is what two sides share.
type Key struct {
	Secret    string // in base64
	Algorithm string // as github.com/miekg/dns names it; "" if it is not told
}

// Ring is keys by their names, fully qualified and in lower case. Its zero value has none.
type Ring struct {
	keys atomic.Pointer[map[string]Key] // replaced whole
}

// Key is the key of a name.
func (r *Ring) Key(name string) (Key, bool) {
	if r == nil {
		return Key{}, false
	}
	keys := r.keys.Load()
	if keys == nil {
		return Key{}, false
	}
	k, ok := (*keys)[name]
	return k, ok
}

// Set makes keys those of the ring, which keeps the map.
func (r *Ring) Set(keys map[string]Key) { r.keys.Store(&keys) }

// Fudge is how many seconds the clocks of both sides may differ, as RFC 8945 §10 recommends.
const Fudge = 300

// Sign adds the record by which m is signed now, with the key of a name, when it is packed.
func Sign(m *dns.Msg, name, algorithm string) { m.SetTsig(name, algorithm, Fudge, time.Now().Unix()) }

// DefaultAlgorithm is that of keys that do not tell theirs.
const DefaultAlgorithm = dns.HmacSHA256

// algorithms is those that a key may be used with, as they are written.
var algorithms = map[string]string{
	"hmac-sha1": dns.HmacSHA1, "hmac-sha224": dns.HmacSHA224, "hmac-sha256": dns.HmacSHA256, "hmac-sha384": dns.HmacSHA384,
	"hmac-sha512": dns.HmacSHA512,
}

// Algorithm is the algorithm that a word stands for, whatever its case, as github.com/miekg/dns names it. It reports
// false for one that is not known.
func Algorithm(word string) (string, bool) {
	a, ok := algorithms[strings.TrimSuffix(strings.ToLower(word), ".")]
	return a, ok
}
