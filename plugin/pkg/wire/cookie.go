package wire

import "encoding/binary"

// Lengths of what a COOKIE option holds (RFC 7873 §4), in octets.
const (
	ClientCookieLen = 8
	CookieLen       = ClientCookieLen + 16 // with a server cookie as RFC 9018 has it

	minServerCookie, maxServerCookie = 8, 32
)

// CookieSized reports whether the data of a COOKIE option may be n octets long (RFC 7873 §5.2.2).
func CookieSized(n int) bool {
	return n == ClientCookieLen || n >= ClientCookieLen+minServerCookie && n <= ClientCookieLen+maxServerCookie
}

// CookieState is what the COOKIE option of a query tells of its client.
type CookieState uint8

const (
	CookieNone    CookieState = iota // there is no such option, or cookies are not answered
	CookieClient                     // a client cookie only
	CookieInvalid                    // a server cookie that is none of ours, or too old
	CookieValid                      // a good one: who asks reads what is sent to its address
)

func (s CookieState) String() string { return [...]string{"none", "client", "invalid", "valid"}[s] }

// Cookie is what the server has found out about the query's cookie.
func (q *Query) Cookie() CookieState { return q.cookie }

// SetCookie says so, and which cookie the reply gets.
func (q *Query) SetCookie(s CookieState, reply [CookieLen]byte) { q.cookie, q.replyCookie = s, reply }

// cookieForReply is the data of the reply's COOKIE option, nil for none.
func (q *Query) cookieForReply() []byte {
	if q.cookie == CookieNone {
		return nil
	}
	return q.replyCookie[:]
}

// optionHead is the octets of an option before its data.
const optionHead = 4

// withoutCookies takes COOKIE options out of b, in its place: they are between a client and who answers it,
// whatever somebody further away has put in.
func withoutCookies(b []byte) []byte {
	kept := 0
	for at := 0; at+optionHead <= len(b); {
		end := min(len(b), at+optionHead+int(binary.BigEndian.Uint16(b[at+2:])))
		if binary.BigEndian.Uint16(b[at:]) != OptionCookie {
			kept += copy(b[kept:], b[at:end])
		}
		at = end
	}
	return b[:kept]
}
