package tsig

import (
	"sync"

	"github.com/miekg/dns"
)

// lastTimes is when the last good message of each key was signed: an older one has been held up, or is played back
// (RFC 8945 §5.2.3). There are no more entries than keys.
type lastTimes struct {
	mu    sync.Mutex
	times map[string]uint64
}

// goesBack reports whether a good signature is older than one before it, and notes its time if not.
func (l *lastTimes) goesBack(sig *dns.TSIG) bool {
	if l == nil {
		return false
	}
	name := dns.CanonicalName(sig.Hdr.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if sig.TimeSigned < l.times[name] {
		return true
	}
	if l.times == nil {
		l.times = map[string]uint64{}
	}
	l.times[name] = sig.TimeSigned
	return false
}
