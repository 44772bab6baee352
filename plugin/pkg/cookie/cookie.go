// Package cookie makes and judges DNS server cookies (RFC 7873) in the form that servers of different make can
// share (RFC 9018).
//
//	COOKIE option:  client cookie (8) │ version (1) │ reserved (3) │ time (4) │ hash (8)
//	                                  └──────────────── server cookie ────────────────┘
//	                hash = SipHash-2-4(secret, all that stands before it │ the client's address)
//
// Who shows a server cookie that is good has got a reply at the address that it asks from, so that address is not
// forged.
//
// Keys are secrets that never change, and pure: the time is an argument. A Ring holds the Keys that are in force, and
// may be used by any number of goroutines. The package knows no message and no policy. Start at Keys.Judge.
package cookie

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Lengths in octets.
const (
	clientLen  = wire.ClientCookieLen
	signedLen  = wire.CookieLen - 8 // what the hash covers, without the address
	secretSize = 16
)

const version = 1

// How old a cookie may be, in seconds (RFC 9018 §4.3).
const (
	freshFor = 30 * 60 // after that a client gets a new one
	goodFor  = 60 * 60
	ahead    = 5 * 60 // clocks of servers that share a secret may differ
)

// Secret is a key of SipHash-2-4.
type Secret [secretSize]byte

var errSecret = fmt.Errorf("a secret has %d hexadecimal digits", 2*secretSize)

// ParseSecret reads a secret of 32 hexadecimal digits. An error does not tell the text.
func ParseSecret(text string) (s Secret, err error) {
	if len(text) != 2*secretSize {
		return s, fmt.Errorf("%w, not %d characters", errSecret, len(text))
	}
	if _, err := hex.Decode(s[:], []byte(text)); err != nil {
		return s, fmt.Errorf("%w, and nothing else", errSecret)
	}
	return s, nil
}

// Keys are the secrets of a server: the first one signs, all of them are good (RFC 9018 §5). There is at least one.
// Keys never change.
type Keys []Secret

// Judge says what the COOKIE option of a query tells of the client at addr, and which one is to be in the reply.
// option is the option's data, of a length that wire.CookieSized accepts; now is in seconds of Unix. The cookie in
// the reply is that of the query as long as it is fresh. Judge does not allocate.
func (k Keys) Judge(option []byte, addr netip.Addr, now uint32) (wire.CookieState, [wire.CookieLen]byte) {
	state := wire.CookieClient
	if len(option) > clientLen {
		state = wire.CookieInvalid
		if age, signer := k.check(option, addr, now); signer >= 0 {
			state = wire.CookieValid
			if signer == 0 && age < freshFor {
				return state, [wire.CookieLen]byte(option)
			}
		}
	}
	return state, k.make([clientLen]byte(option), addr, now)
}

// check is the age of a cookie in seconds, and which of the secrets it was signed with: -1 if with none, or if it
// is too old.
func (k Keys) check(option []byte, addr netip.Addr, now uint32) (age int32, signer int) {
	if len(option) != wire.CookieLen || option[clientLen] != version {
		return 0, -1
	}
	age = int32(now - binary.BigEndian.Uint32(option[12:])) // serial arithmetic (RFC 1982)
	if age < -ahead || age > goodFor {
		return 0, -1
	}
	var room [signedLen + 16]byte
	signed := signedWith(&room, option, addr)
	hash := binary.LittleEndian.Uint64(option[signedLen:])
	for i := range k {
		if sipHash(&k[i], signed) == hash {
			return age, i
		}
	}
	return 0, -1
}

// make is a new cookie for a client.
func (k Keys) make(client [clientLen]byte, addr netip.Addr, now uint32) (c [wire.CookieLen]byte) {
	copy(c[:], client[:])
	c[clientLen] = version
	binary.BigEndian.PutUint32(c[12:], now)
	var room [signedLen + 16]byte
	binary.LittleEndian.PutUint64(c[signedLen:], sipHash(&k[0], signedWith(&room, c[:], addr)))
	return c
}

// signedWith is what the hash of a cookie is taken over.
func signedWith(room *[signedLen + 16]byte, cookie []byte, addr netip.Addr) []byte {
	b := append(room[:0], cookie[:signedLen]...)
	if addr.Is4() {
		a := addr.As4()
		return append(b, a[:]...)
	}
	a := addr.As16()
	return append(b, a[:]...)
}
