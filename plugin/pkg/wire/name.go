package wire

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
)

// Errors of names that do not keep RFC 1035 §3.1's limits.
var (
	ErrLabel = errors.New("label is empty or longer than 63 octets")
	ErrName  = errors.New("name is longer than 255 octets")
)

// ErrEscape is the error of an escape \DDD that no octet has: more than 255 (RFC 1035 §5.1).
var ErrEscape = errors.New(`escape is more than \255`)

// Root is the root's name.
var Root = []byte{0}

// AppendName appends the presentation form s (RFC 1035 §5.1, with \DDD and \X
// escapes, final dot or not) to b in wire form. On an error b is returned as it was.
func AppendName[T string | []byte](b []byte, s T) ([]byte, error) {
	start := len(b)
	if len(s) == 0 || len(s) == 1 && s[0] == '.' {
		return append(b, 0), nil
	}
	label := len(b)
	b = append(b, 0)
	for i := 0; i < len(s); i++ {
		from := i
		for i < len(s) && s[i] != '.' && s[i] != '\\' {
			i++
		}
		b = append(b, s[from:i]...)
		if i == len(s) {
			break
		}
		if s[i] == '.' {
			n := len(b) - label - 1
			if n == 0 || n > MaxLabel {
				return b[:start], ErrLabel
			}
			b[label] = byte(n)
			label = len(b)
			b = append(b, 0)
			continue
		}
		i++
		if i == len(s) {
			return b[:start], ErrLabel
		}
		c := s[i]
		if i+2 < len(s) && digit(c) && digit(s[i+1]) && digit(s[i+2]) {
			n := int(c-'0')*100 + int(s[i+1]-'0')*10 + int(s[i+2]-'0')
			if n > 255 {
				return b[:start], ErrEscape
			}
			c = byte(n)
			i += 2
		}
		b = append(b, c)
	}
	if n := len(b) - label - 1; n > 0 { // no final dot
		if n > MaxLabel {
			return b[:start], ErrLabel
		}
		b[label] = byte(n)
		b = append(b, 0)
	}
	if len(b)-start > MaxName {
		return b[:start], ErrName
	}
	return b, nil
}

// MustName is AppendName for names that are constants of a program; it panics on an error.
func MustName(s string) []byte {
	b, err := AppendName(nil, s)
	if err != nil {
		panic("wire: " + s + ": " + err.Error())
	}
	return b
}

// LowerName is the wire form of s in lower case.
func LowerName(s string) ([]byte, error) {
	b, err := AppendName(make([]byte, 0, len(s)+2), s)
	if err != nil {
		return nil, err
	}
	Lower(b, b)
	return b, nil
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// AppendText appends the presentation form of the wire name to b, with a final
// dot and the escapes that github.com/miekg/dns writes, so that both lanes print
// one name alike. name must be well-formed.
func AppendText(b, name []byte) []byte {
	if len(name) == 0 || name[0] == 0 {
		return append(b, '.')
	}
	for i := 0; i < len(name) && name[i] != 0; {
		n := int(name[i])
		label := name[i+1 : i+1+n]
		var any escape
		for _, c := range label {
			any |= escapes[c]
		}
		if any == plain {
			b = append(b, label...)
		} else {
			b = appendEscaped(b, label)
		}
		b = append(b, '.')
		i += n + 1
	}
	return b
}

// escape is how an octet of a label is written.
type escape uint8

const (
	plain    escape = iota
	slashed         // \X
	numbered        // \DDD
)

var escapes = func() (all [256]escape) {
	for c := range all {
		if c < ' ' || c > '~' {
			all[c] = numbered
		}
	}
	for _, c := range []byte(`. '@;()"\`) {
		all[c] = slashed
	}
	return all
}()

func appendEscaped(b, label []byte) []byte {
	for _, c := range label {
		switch escapes[c] {
		case slashed:
			b = append(b, '\\', c)
		case numbered:
			b = append(b, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
		default:
			b = append(b, c)
		}
	}
	return b
}

// Text is AppendText as a string.
func Text(name []byte) string { return string(AppendText(make([]byte, 0, len(name)+8), name)) }

// Lower copies src to dst with the letters A-Z in lower case. dst must be as
// long as src and may be src. Length octets are below 'A' and so untouched.
func Lower(dst, src []byte) {
	i := 0
	for ; i+8 <= len(src); i += 8 {
		v := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], v|upperMask(v)>>2)
	}
	for ; i < len(src); i++ {
		dst[i] = lower[src[i]]
	}
}

// upperMask has the high bit of each octet of v set that is one of A-Z.
// Eight octets at a time: adding 0x3f carries into the high bit from 'A' on, adding
// 0x25 from beyond 'Z' on; octets of 0x80 and more are left out.
func upperMask(v uint64) uint64 {
	const ones = 0x0101010101010101
	x := v & (0x7f * ones)
	return (x + 0x3f*ones) &^ (x + 0x25*ones) &^ v & (0x80 * ones)
}

var lower = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if i >= 'A' && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

// EqualFold reports whether two names are equal but for the case of ASCII letters.
func EqualFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower[a[i]] != lower[b[i]] {
			return false
		}
	}
	return true
}

var seed = maphash.MakeSeed()

// Hash is a hash of a lower name. It is seeded anew in each process, so that
// nobody outside can choose names that collide.
func Hash(name []byte) uint64 { return maphash.Bytes(seed, name) }

// NameLen is the length of the well-formed, uncompressed name at the begin of b,
// or 0 if there is none: too long, cut short, or compressed.
func NameLen(b []byte) int {
	for i := 0; i < len(b) && i < MaxName; {
		n := int(b[i])
		i++
		if n == 0 {
			return i
		}
		if n > MaxLabel {
			return 0
		}
		i += n
	}
	return 0
}

// NameSpan is how many octets a name takes where it stands, at off of a message: all of it, or what comes before its
// pointer, and that. It is 0 for one that is malformed.
func NameSpan(msg []byte, off int) int {
	for i := off; i < len(msg); {
		switch n := int(msg[i]); {
		case n == 0:
			return i + 1 - off
		case n&0xC0 == 0xC0:
			return i + 2 - off
		case n > MaxLabel:
			return 0
		default:
			i += n + 1
		}
	}
	return 0
}

// CountLabels is the number of labels of name, the root's not counted.
func CountLabels(name []byte) int {
	n := 0
	for i := 0; name[i] != 0; i += int(name[i]) + 1 {
		n++
	}
	return n
}

// Parent is name without its first label; the root's parent is the root.
func Parent(name []byte) []byte {
	if name[0] == 0 {
		return name
	}
	return name[name[0]+1:]
}

// FirstLabel is the first label's octets, empty for the root.
func FirstLabel(name []byte) []byte { return name[1 : 1+int(name[0])] }

// Below reports whether lower name is zone or a name below it.
func Below(name, zone []byte) bool {
	cut := len(name) - len(zone)
	if cut < 0 || string(name[cut:]) != string(zone) {
		return false
	}
	i := 0
	for i < cut {
		i += int(name[i]) + 1
	}
	return i == cut
}

// LabelOffsets writes the offset of each label of name to offs and returns their
// number; the root's octet is not counted. A name has at most 127 labels.
func LabelOffsets(name []byte, offs *[128]uint8) int {
	n := 0
	for i := 0; name[i] != 0; i += int(name[i]) + 1 {
		offs[n] = uint8(i)
		n++
	}
	return n
}

// Compare orders lower names canonically (RFC 4034 §6.1): by labels from the
// right, each by its octets. It is negative, zero or positive as a is before,
// equal to or after b.
func Compare(a, b []byte) int {
	var ao, bo [128]uint8
	an, bn := LabelOffsets(a, &ao), LabelOffsets(b, &bo)
	for an > 0 && bn > 0 {
		an--
		bn--
		la, lb := FirstLabel(a[ao[an]:]), FirstLabel(b[bo[bn]:])
		if string(la) != string(lb) {
			if string(la) < string(lb) {
				return -1
			}
			return 1
		}
	}
	return an - bn
}
