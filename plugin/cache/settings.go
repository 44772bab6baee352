package cache

import (
	"math"
	"time"

	"github.com/coredns/coredns/plugin/pkg/response"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// settings is what the Corefile says about a cache.
type settings struct {
	zones           []string
	success, denial class
	servfail        time.Duration // how long errors are kept; 0: not at all
	keepTTL         bool
	ignoreMinimum   bool // the SOA's minimum does not bound how long denials are kept

	prefetch   int           // hits that make a name one to be fetched again before it ends; 0: none
	duration   time.Duration // without a hit after which the count begins anew
	percentage int           // of the TTL that is left when it is fetched

	stale          time.Duration // how long after their end entries are still of use
	verify         bool          // ask before an ended entry is used
	verifyTimeout  time.Duration // how long that may take; 0: no bound
	staleTTL       uint32        // TTL of the records of ended entries, in seconds
	failureRecheck time.Duration // no refresh for so long after one that failed
	staleEDE       bool          // stale answers say that they are
	preferPositive bool

	failures bool // it is kept that there was no answer, too

	memory      int64                  // octets for all caches of the process; 0: not said
	noReferrals bool                   // those for who does not desire recursion are not kept: others would get them
	leavesAA    func(name []byte) bool // hits on such names have no AA bit of the cache's; nil is none
	stripECS    bool                   // queries go on without the network that they name
}

// class is what holds for one of the two classes of answers.
type class struct {
	capacity int
	max, min uint32   // bounds of TTLs in seconds
	disabled [][]byte // zones, as lower names, of which nothing is kept
}

const (
	defaultCapacity = 10000
	maxTTL          = 3600
	maxDenialTTL    = maxTTL / 2
	minTTL          = 5

	defaultStale = time.Hour
	maxServfail  = 5 * time.Minute
	maxRecheck   = 5 * time.Minute
	maxWireTTL   = math.MaxInt32 // RFC 2181 §8
)

func defaults() settings {
	return settings{
		success:    class{capacity: defaultCapacity, max: maxTTL, min: minTTL},
		denial:     class{capacity: defaultCapacity, max: maxDenialTTL, min: minTTL},
		servfail:   minTTL * time.Second,
		duration:   time.Minute,
		percentage: 10,
	}
}

// disabled reports whether answers of a kind are not kept for a lower name.
func (s *settings) disabled(kind response.Type, name []byte) bool {
	zones := s.denial.disabled
	if positive(kind) {
		zones = s.success.disabled
	}
	for _, z := range zones {
		if wire.Below(name, z) {
			return true
		}
	}
	return false
}

// positive reports whether answers of a kind are kept as positive ones.
func positive(kind response.Type) bool {
	return kind == response.NoError || kind == response.Delegation
}
