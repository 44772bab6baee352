package zonefile

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"

	"github.com/miekg/dns"
)

var errCount = errors.New("wrong number of fields")

func appendAddr(b []byte, typ uint16, words []word) ([]byte, error) {
	if len(words) != 1 {
		return b, errCount
	}
	a, err := netip.ParseAddr(string(words[0].text))
	switch {
	case err != nil || a.Zone() != "":
	case typ == dns.TypeA && a.Is4():
		v := a.As4()
		return append(b, v[:]...), nil
	case typ == dns.TypeAAAA && a.Is6():
		v := a.As16()
		return append(b, v[:]...), nil
	}
	return b, fmt.Errorf("bad address %q", words[0].text)
}

// appendFields appends fields by their kinds: n a name, u a number of 16 bits, s one of 32
// bits, t a time of 32 bits.
func appendFields(b []byte, kinds string, words []word, origin []byte) ([]byte, error) {
	if len(words) != len(kinds) {
		return b, errCount
	}
	for i := range words {
		text := words[i].text
		switch kinds[i] {
		case 'n':
			var err error
			if b, err = appendName(b, text, origin); err != nil {
				return b, fmt.Errorf("bad name %q: %w", text, err)
			}
		case 'u':
			n, err := strconv.ParseUint(string(text), 10, 16)
			if err != nil {
				return b, fmt.Errorf("bad number %q: must be 0 to %d", text, math.MaxUint16)
			}
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		case 's':
			n, err := strconv.ParseUint(string(text), 10, 32)
			if err != nil {
				return b, fmt.Errorf("%q: must be a number of 0 to %d", text, uint32(math.MaxUint32))
			}
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		case 't':
			t, ok := parseTTL(text)
			if !ok {
				return b, fmt.Errorf("%q: must be a time", text)
			}
			b = binary.BigEndian.AppendUint32(b, t)
		}
	}
	return b, nil
}

// appendStrings appends words as strings (RFC 1035 §3.3). One that is longer than 255 octets
// becomes several.
func appendStrings(b []byte, words []word) ([]byte, error) {
	if len(words) == 0 {
		return b, errCount
	}
	for _, w := range words {
		at := len(b)
		b = append(b, 0)
		for i := 0; i < len(w.text); {
			if len(b)-at-1 == math.MaxUint8 {
				b[at] = math.MaxUint8
				at = len(b)
				b = append(b, 0)
			}
			c, n := unescape(w.text[i:])
			b = append(b, c)
			i += n
		}
		b[at] = byte(len(b) - at - 1)
	}
	return b, nil
}

// appendGeneric appends data in the form of RFC 3597 §5: its length, and its octets in hex.
func appendGeneric(b []byte, words []word) ([]byte, error) {
	if len(words) == 0 {
		return b, errCount
	}
	n, err := strconv.ParseUint(string(words[0].text), 10, 16)
	if err != nil {
		return b, fmt.Errorf("bad length %q", words[0].text)
	}
	start := len(b)
	for _, w := range words[1:] {
		if b, err = hex.AppendDecode(b, w.text); err != nil {
			return b, fmt.Errorf("bad data %q: %w", w.text, err)
		}
	}
	if len(b)-start != int(n) {
		return b, fmt.Errorf("%d octets where %d were told", len(b)-start, n)
	}
	return b, nil
}

// unescape is the octet at the begin of text, which may be written as \DDD or \X, and how
// many octets of text it takes.
func unescape(text []byte) (byte, int) {
	if text[0] != '\\' || len(text) == 1 {
		return text[0], 1
	}
	if len(text) >= 4 && digit(text[1]) && digit(text[2]) && digit(text[3]) {
		return (text[1]-'0')*100 + (text[2]-'0')*10 + text[3] - '0', 4
	}
	return text[1], 2
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
