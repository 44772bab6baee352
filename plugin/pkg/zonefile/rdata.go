package zonefile

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/miekg/dns"
)

// format is how the RDATA of a type is written, one letter a field:
//
//	n  a name                    u s b  a number of 16, 32, 8 bits    t  a time of 32 bits
//	T  a type                    d  a date of a signature             S  a string
//	x  the rest in hex           6  the rest in base64                m  the rest as a bitmap of types
//	h  a salt                    H  a hash in base32hex          g  64 bits, as half an IPv6 address
//	a  an algorithm of DNSSEC    Y, y  a type and a scheme of DSYNC
type format struct {
	kinds  string
	fields string // what they mean, for who forgot one
	plain  bool   // its errors are ours; those of others are told by github.com/miekg/dns, which knows more forms
}

// formats are the types whose data is read here; miekg/dns reads all others.
var formats = map[uint16]format{
	dns.TypeNS:         {"n", "HOST", true},
	dns.TypeCNAME:      {"n", "TARGET", true},
	dns.TypePTR:        {"n", "TARGET", true},
	dns.TypeDNAME:      {"n", "TARGET", true},
	dns.TypeMX:         {"un", "PREFERENCE HOST", true},
	dns.TypeSRV:        {"uuun", "PRIORITY WEIGHT PORT TARGET", true},
	dns.TypeSOA:        {"nnstttt", "PRIMARY CONTACT SERIAL REFRESH RETRY EXPIRE MINIMUM", true},
	dns.TypeDS:         {kinds: "uabx"},
	dns.TypeCDS:        {kinds: "uabx"},
	dns.TypeDNSKEY:     {kinds: "uba6"},
	dns.TypeCDNSKEY:    {kinds: "uba6"},
	dns.TypeRRSIG:      {kinds: "Tabsddun6"},
	dns.TypeNSEC:       {kinds: "nm"},
	dns.TypeNSEC3:      {kinds: "bbuhHm"},
	dns.TypeNSEC3PARAM: {kinds: "bbuh"},
	dns.TypeTLSA:       {kinds: "bbbx"},
	dns.TypeSSHFP:      {kinds: "bbx"},
	dns.TypeZONEMD:     {kinds: "sbbx"},
	dns.TypeNAPTR:      {kinds: "uuSSSn"},
	dns.TypeHINFO:      {kinds: "SS"},
	dns.TypeX25:        {kinds: "S"},
	dns.TypeNID:        {kinds: "ug"},
	dns.TypeL64:        {kinds: "ug"},
	typeDSYNC:          {"Yyun", "RRTYPE SCHEME PORT TARGET", true},
	typeHHIT:           {"6", "DATA", true},
	typeBRID:           {"6", "DATA", true},
}

// rest reports whether the last field takes all words that are left, none too if it is a bitmap.
func (f *format) rest() bool {
	switch f.kinds[len(f.kinds)-1] {
	case 'x', '6', 'm':
		return true
	}
	return false
}

// fits reports whether n words can be the fields.
func (f *format) fits(n int) bool {
	need := len(f.kinds)
	switch {
	case !f.rest():
		return n == need
	case f.kinds[need-1] == 'm':
		return n >= need-1
	}
	return n >= need
}

// appendAddr appends the one field of an A or AAAA record.
func appendAddr(b []byte, typ uint16, words []word) ([]byte, error) {
	family := "an IPv4 address"
	if typ == dns.TypeAAAA {
		family = "an IPv6 address"
	}
	if len(words) != 1 {
		return b, fmt.Errorf("%d fields where %s is needed", len(words), family)
	}
	text := words[0].text
	if typ == dns.TypeA {
		if out, ok := appendIPv4(b, text); ok {
			return out, nil
		}
	} else if a, err := netip.ParseAddr(string(text)); err == nil && a.Zone() == "" && a.Is6() {
		v := a.As16()
		return append(b, v[:]...), nil
	}
	return b, fmt.Errorf("bad address %q: must be %s", text, family)
}

// appendIPv4 reads four numbers of 0 to 255, without zeros in front.
func appendIPv4(b, text []byte) ([]byte, bool) {
	parts, n, digits := 0, 0, 0
	for i := 0; ; i++ {
		if i == len(text) || text[i] == '.' {
			if digits == 0 {
				return b, false
			}
			b = append(b, byte(n))
			parts++
			if i == len(text) {
				return b, parts == 4
			}
			if parts == 4 {
				return b, false
			}
			n, digits = 0, 0
			continue
		}
		c := text[i]
		if !digit(c) || digits == 1 && n == 0 {
			return b, false
		}
		n, digits = n*10+int(c-'0'), digits+1
		if n > math.MaxUint8 {
			return b, false
		}
	}
}

// appendFields appends words as the fields of a format.
func appendFields(b []byte, f *format, words []word, origin []byte) ([]byte, error) {
	if !f.fits(len(words)) {
		return b, fmt.Errorf("%d fields where %d are needed: %s", len(words), len(f.kinds), f.fields)
	}
	for i := range f.kinds {
		var err error
		if i == len(f.kinds)-1 && f.rest() {
			return appendRest(b, f.kinds[i], words[i:])
		}
		if b, err = appendField(b, f.kinds[i], words[i], origin); err != nil {
			return b, err
		}
	}
	return b, nil
}

// appendField appends one field. origin completes names that are not complete.
func appendField(b []byte, kind byte, w word, origin []byte) ([]byte, error) {
	text := w.text
	switch kind {
	case 'n':
		out, err := appendName(b, text, origin)
		if err != nil {
			return b, fmt.Errorf("bad name %q: %w", text, err)
		}
		return out, nil
	case 'b':
		n, ok := parseNumber(text, math.MaxUint8)
		if !ok {
			return b, badNumber(text, math.MaxUint8)
		}
		return append(b, byte(n)), nil
	case 'a':
		if n, ok := dns.StringToAlgorithm[string(bytes.ToUpper(text))]; ok { // RFC 4034 §2.2
			return append(b, n), nil
		}
		return appendField(b, 'b', w, origin)
	case 'u':
		n, ok := parseNumber(text, math.MaxUint16)
		if !ok {
			return b, badNumber(text, math.MaxUint16)
		}
		return binary.BigEndian.AppendUint16(b, uint16(n)), nil
	case 's':
		n, ok := parseNumber(text, math.MaxUint32)
		if !ok {
			return b, badNumber(text, math.MaxUint32)
		}
		return binary.BigEndian.AppendUint32(b, uint32(n)), nil
	case 't':
		t, ok := parseTTL(text)
		if !ok {
			return b, fmt.Errorf("bad time %q: must be seconds, or numbers with the units w, d, h, m and s, up to %d seconds", text, uint32(math.MaxUint32))
		}
		return binary.BigEndian.AppendUint32(b, t), nil
	case 'T':
		t, ok := parseType(text)
		if !ok {
			return b, unknownType(text)
		}
		return binary.BigEndian.AppendUint16(b, t), nil
	case 'd':
		return appendDate(b, text)
	case 'S':
		return appendOneString(b, w)
	case 'h', 'H':
		return appendHash(b, kind, text)
	case 'g':
		return appendGroups(b, text)
	case 'Y', 'y':
		return appendNotified(b, kind, w)
	}
	panic("zonefile: unknown kind of field")
}

// appendOneString appends a string, where there is no room for several.
func appendOneString(b []byte, w word) ([]byte, error) {
	at := len(b)
	b, err := appendStrings(b, []word{w})
	if err == nil && at+1+int(b[at]) != len(b) {
		err = errors.New("a string is longer than 255 octets")
	}
	return b, err
}

// appendGroups appends 64 bits that are written as four groups of up to four hex digits (RFC 6742 §2.1.2, §2.3.2).
func appendGroups(b, text []byte) ([]byte, error) {
	out, groups := b, 0
	for group := range bytes.SplitSeq(text, []byte(":")) {
		n, err := strconv.ParseUint(string(group), 16, 16)
		if err != nil || len(group) > 4 {
			return b, fmt.Errorf("bad group %q", group)
		}
		out, groups = binary.BigEndian.AppendUint16(out, uint16(n)), groups+1
	}
	if groups != 4 {
		return b, fmt.Errorf("%q has %d groups, not 4", text, groups)
	}
	return out, nil
}

// parseNumber reads a decimal number without sign.
func parseNumber(text []byte, limit uint64) (n uint64, ok bool) {
	for _, c := range text {
		if !digit(c) {
			return 0, false
		}
		if n = n*10 + uint64(c-'0'); n > limit {
			return 0, false
		}
	}
	return n, len(text) > 0
}

func badNumber(text []byte, limit uint64) error {
	return fmt.Errorf("bad number %q: must be 0 to %d", text, limit)
}

// appendDate appends a date as YYYYMMDDHHmmSS in UTC, or as seconds since 1970 (RFC 4034 §3.2).
func appendDate(b, text []byte) ([]byte, error) {
	if len(text) == 14 {
		if t, err := time.Parse("20060102150405", string(text)); err == nil {
			return binary.BigEndian.AppendUint32(b, uint32(t.Unix())), nil
		}
	} else if n, ok := parseNumber(text, math.MaxUint32); ok {
		return binary.BigEndian.AppendUint32(b, uint32(n)), nil
	}
	return b, fmt.Errorf("bad date %q: must be YYYYMMDDHHmmSS or seconds since 1970", text)
}

var base32hex = base32.HexEncoding.WithPadding(base32.NoPadding)

// appendHash appends a salt in hex, - for none, or a hash in base32hex, behind its length.
func appendHash(b []byte, kind byte, text []byte) ([]byte, error) {
	at := len(b)
	b = append(b, 0)
	var err error
	switch {
	case kind == 'h' && string(text) == "-":
	case kind == 'h':
		b, err = hex.AppendDecode(b, text)
	default:
		b, err = base32hex.AppendDecode(b, bytes.ToUpper(text))
	}
	// A salt may be empty, a hash may not (RFC 5155 §3.3).
	n := len(b) - at - 1
	if err != nil || n > math.MaxUint8 || n == 0 && kind == 'H' {
		return b[:at], fmt.Errorf("bad salt or hash %q", text)
	}
	b[at] = byte(n)
	return b, nil
}

// appendRest appends the words that are left, as one field.
func appendRest(b []byte, kind byte, words []word) ([]byte, error) {
	if kind == 'm' {
		return appendBitmap(b, words)
	}
	start := len(b)
	for _, w := range words {
		b = append(b, w.text...)
	}
	end := len(b)
	var err error
	if kind == 'x' {
		b, err = hex.AppendDecode(b, b[start:end])
	} else {
		b, err = base64.StdEncoding.AppendDecode(b, b[start:end])
	}
	if err != nil {
		return b[:start], fmt.Errorf("bad data: %w", err)
	}
	// The text was put together in b itself; what it stands for moves to its place.
	return b[:start+copy(b[start:], b[end:])], nil
}

// appendBitmap appends a bitmap of types (RFC 4034 §4.1.2).
func appendBitmap(b []byte, words []word) ([]byte, error) {
	var room [64]uint16
	types := room[:0]
	for _, w := range words {
		t, ok := parseType(w.text)
		if !ok {
			return b, unknownType(w.text)
		}
		types = append(types, t)
	}
	slices.Sort(types)
	for len(types) > 0 {
		window := byte(types[0] >> 8)
		b = append(b, window, 0)
		at := len(b)
		for len(types) > 0 && byte(types[0]>>8) == window {
			bit := byte(types[0])
			// A window has as many octets as its highest type needs, and no more.
			for len(b)-at <= int(bit>>3) {
				b = append(b, 0)
			}
			b[at+int(bit>>3)] |= 0x80 >> (bit & 7)
			types = types[1:]
		}
		b[at-1] = byte(len(b) - at)
	}
	return b, nil
}

// appendStrings appends words as strings (RFC 1035 §3.3). One that is longer than 255 octets
// becomes several.
func appendStrings(b []byte, words []word) ([]byte, error) {
	if len(words) == 0 {
		return b, errors.New("no text")
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
		return b, errors.New("no length behind \\#")
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
