// Package autotrust follows the keys of a zone that is a trust anchor (RFC 5011): new ones are believed once they have
// stood there long enough, those that say of themselves that they are revoked are not any more.
//
//	DNSKEY RRset, validated ──Zone.See──▶ states of keys ──Trusted──▶ anchors
//	                                        └──Append, Parse──▶ a file that outlives the process
//
// It has no clock, fetches nothing and verifies nothing. A Zone is for one goroutine. Start at Zone.See.
package autotrust

import (
	"fmt"
	"time"
)

// State is how far a key is believed (RFC 5011 §4.1).
type State uint8

// States. A key that is in none of them was never seen, or left before it was believed.
const (
	AddPend State = iota + 1
	Valid
	Missing // believed, though it is not there
	Revoked
	Removed
)

var stateNames = map[State]string{AddPend: "addpend", Valid: "valid", Missing: "missing", Revoked: "revoked", Removed: "removed"}

// String is the state's name, as the file has it.
func (s State) String() string { return stateNames[s] }

// Hold-down times (RFC 5011 §2.4.1, §2.4.2).
const (
	AddHold    = 30 * 24 * time.Hour
	RemoveHold = 30 * 24 * time.Hour
)

// Key is a key that has been seen. RDATA is that of its DNSKEY record without the REVOKE flag, so that a key stays the
// same when it is revoked.
type Key struct {
	RDATA string
	State State
	Since time.Time // that it is in the State
}

// Zone is a trust anchor with its keys.
type Zone struct {
	Name string // wire form, lower case
	Keys []Key
	Last time.Time // when its keys were seen last
	Next time.Time // when they are to be looked at again
}

// Flags of DNSKEY records (RFC 4034 §2.1.1, RFC 5011 §3).
const (
	flagSEP    = 0x0001
	flagRevoke = 0x0080
)

// Plain is the RDATA of a DNSKEY record without the REVOKE flag, and whether it had that.
func Plain(rdata string) (plain string, revoked bool) {
	if len(rdata) < 2 || rdata[1]&flagRevoke == 0 {
		return rdata, false
	}
	return rdata[:1] + string(rdata[1]&^flagRevoke) + rdata[2:], true
}

// Seen is a DNSKEY RRset as a zone has it, with what was found out about it. The functions are called with the
// RDATA of keys in it; they do not keep it.
type Seen struct {
	Keys    []string // RDATA
	Secure  bool     // it is signed by a key that is believed
	Trusted func(rdata string) bool
	Revokes func(rdata string) bool // it is signed by this key, which has the REVOKE flag
	TTL     time.Duration
	Left    time.Duration // until its signature ends
}

// A key that revokes itself is heard even if nobody else has signed (RFC 5011 §2.1): it can only take trust away. All
// else counts only in an RRset that is secure by a key that is believed already.

// See takes note of a DNSKEY RRset (RFC 5011 §4), and tells what has changed. Trusted reports which keys
// an anchor of the configuration speaks for: they are believed at once.
func (z *Zone) See(s Seen, now time.Time) (changes []string) {
	present := map[string]bool{}
	set := func(k *Key, to State) {
		if k.State != to {
			changes = append(changes, fmt.Sprintf("%s %s, was %s", Describe(k.RDATA), to, k.State))
			k.State, k.Since = to, now
		}
	}
	for _, rdata := range s.Keys {
		plain, revoked := Plain(rdata)
		if len(rdata) < 4 || rdata[1]&flagSEP == 0 {
			continue
		}
		k := z.find(plain)
		if revoked {
			if k != nil && (k.State == Valid || k.State == Missing) && s.Revokes(rdata) {
				set(k, Revoked)
			}
			if k != nil && k.State == Revoked {
				present[plain] = true
			}
			continue
		}
		if !s.Secure {
			continue
		}
		present[plain] = true
		switch {
		case k == nil && s.Trusted(rdata):
			z.Keys = append(z.Keys, Key{plain, Valid, now})
			changes = append(changes, Describe(plain)+" valid, as configured")
		case k == nil:
			z.Keys = append(z.Keys, Key{plain, AddPend, now})
			changes = append(changes, Describe(plain)+" addpend, is new")
		case k.State == Missing, k.State == AddPend && (now.Sub(k.Since) >= max(AddHold, s.TTL) || s.Trusted(rdata)):
			set(k, Valid)
		}
	}
	if s.Secure {
		changes = append(changes, z.absent(present, set)...)
		z.Last = now
	}
	return changes
}

// A key on trial that leaves begins anew when it comes again, so that who can add a key for a day only gains nothing
// (RFC 5011 §2.2). One that is believed stays so: it may be kept aside by its owner.

// absent goes through the keys that are not there.
func (z *Zone) absent(present map[string]bool, set func(*Key, State)) (changes []string) {
	kept := z.Keys[:0]
	for i := range z.Keys {
		k := z.Keys[i]
		if !present[k.RDATA] {
			switch k.State {
			case AddPend:
				changes = append(changes, Describe(k.RDATA)+" gone, was addpend")
				continue
			case Valid:
				set(&k, Missing)
			}
		}
		kept = append(kept, k)
	}
	z.Keys = kept
	return changes
}

// A removed key stays in the list for ever. Else its owner, or who has stolen it, could have it believed again by the
// configuration that still names it, or by letting it stand in the zone for another 30 days.

// Age removes revoked keys whose hold-down is over.
func (z *Zone) Age(now time.Time) (changes []string) {
	for i := range z.Keys {
		if k := &z.Keys[i]; k.State == Revoked && now.Sub(k.Since) >= RemoveHold {
			changes = append(changes, Describe(k.RDATA)+" removed, was revoked")
			k.State, k.Since = Removed, now
		}
	}
	return changes
}

func (z *Zone) find(plain string) *Key {
	for i := range z.Keys {
		if z.Keys[i].RDATA == plain {
			return &z.Keys[i]
		}
	}
	return nil
}

// What the configuration names and what was followed count both. A zone whose owner has rolled twice since the
// configuration was written is believed by the state alone; one without state by the configuration alone.

// Trusted is the RDATA of the keys that are believed.
func (z *Zone) Trusted() (all []string) {
	for _, k := range z.Keys {
		if k.State == Valid || k.State == Missing {
			all = append(all, k.RDATA)
		}
	}
	return all
}

// Ended reports whether a key is not believed any more, whatever the configuration says.
func (z *Zone) Ended(rdata string) bool {
	plain, _ := Plain(rdata)
	k := z.find(plain)
	return k != nil && (k.State == Revoked || k.State == Removed)
}

// TTL and signature bound the pause, so that a revocation is seen while the signatures that an attacker has kept from
// before still run; the hour keeps zones with TTLs of seconds from being asked all the time.

// Refresh is how long after a look at the keys the next one is due (RFC 5011 §2.3): after a failure sooner.
func Refresh(ttl, left time.Duration, failed bool) time.Duration {
	if failed {
		return max(time.Hour, min(24*time.Hour, ttl/10, left/10))
	}
	return max(time.Hour, min(15*24*time.Hour, ttl/2, left/2))
}

// find is by RDATA and not by tag: tags of different keys may be equal, and that of a key changes when it is
// revoked (RFC 5011 §3).

// Tag is the key tag of a DNSKEY's RDATA (RFC 4034 appendix B).
func Tag(rdata string) uint16 {
	sum := uint32(0)
	for i := range len(rdata) {
		if i%2 == 0 {
			sum += uint32(rdata[i]) << 8
		} else {
			sum += uint32(rdata[i])
		}
	}
	return uint16(sum + sum>>16)
}

// Describe names a key for people.
func Describe(rdata string) string {
	if len(rdata) < 4 {
		return "key"
	}
	return fmt.Sprintf("key %d (algorithm %d)", Tag(rdata), rdata[3])
}
