package replacer

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// variable appends the value of a variable.
type variable func(b []byte, f *Facts) []byte

// variables are all variables by name, as it stands in braces.
var variables = map[string]variable{
	"type": func(b []byte, f *Facts) []byte {
		if f.Unasked {
			return b
		}
		return appendType(b, f.Type)
	},
	"class": func(b []byte, f *Facts) []byte {
		if f.Unasked {
			return b
		}
		return appendClass(b, f.Class)
	},
	"name": appendName,
	looked: appendLookedUp,
	"proto": func(b []byte, f *Facts) []byte {
		if f.TCP {
			return append(b, "tcp"...)
		}
		return append(b, "udp"...)
	},
	"size":     func(b []byte, f *Facts) []byte { return appendInt(b, f.Size) },
	"remote":   func(b []byte, f *Facts) []byte { return appendHost(b, f.Client, f.ClientAddr) },
	"port":     func(b []byte, f *Facts) []byte { return appendPort(b, f.Client, f.ClientAddr) },
	"local":    func(b []byte, f *Facts) []byte { return appendHost(b, f.Local, f.LocalAddr) },
	">id":      func(b []byte, f *Facts) []byte { return appendInt(b, int(f.ID)) },
	">opcode":  func(b []byte, f *Facts) []byte { return appendInt(b, f.Opcode) },
	">do":      func(b []byte, f *Facts) []byte { return strconv.AppendBool(b, f.DO) },
	">bufsize": func(b []byte, f *Facts) []byte { return appendInt(b, f.BufSize) },
	"rcode":    appendRcode,
	">rflags":  appendFlags,
	"rsize":    appendReplySize,
	"duration": appendDuration,
}

// appendInt appends a number. Those of lines have few digits, and strconv takes twice as long for them.
func appendInt(b []byte, n int) []byte {
	switch u := uint32(n); {
	case n < 0 || n >= 100_000:
		return strconv.AppendInt(b, int64(n), 10)
	case u < 10:
		return append(b, byte('0'+u))
	case u < 100:
		return append(b, byte('0'+u/10), byte('0'+u%10))
	case u < 1000:
		return append(b, byte('0'+u/100), byte('0'+u/10%10), byte('0'+u%10))
	case u < 10_000:
		return append(b, byte('0'+u/1000), byte('0'+u/100%10), byte('0'+u/10%10), byte('0'+u%10))
	default:
		return append(b, byte('0'+u/10_000), byte('0'+u/1000%10), byte('0'+u/100%10), byte('0'+u/10%10), byte('0'+u%10))
	}
}

// appendName appends the name that was asked for, as presented.
func appendName(b []byte, f *Facts) []byte {
	if f.WireName != nil {
		return wire.AppendText(b, f.WireName)
	}
	return append(b, f.Name...)
}

// looked is the variable with the name that was looked up last. It is ours alone.
const looked = "looked_up"

// appendLookedUp appends the name that plugins looked up last, as presented, in lower case.
func appendLookedUp(b []byte, f *Facts) []byte {
	switch {
	case f.WireLooked != nil:
		return wire.AppendText(b, f.WireLooked)
	case f.LookedUp != "":
		return append(b, dns.CanonicalName(f.LookedUp)...)
	}
	return appendName(b, f)
}

// names are those of a code's lowest values, "" for what has none: HTTPS, type 65, is asked for as often as A.
type names [128]string

// namesOf makes an array of a map of miekg/dns: it is looked at with each line.
func namesOf[T ~uint16 | ~int](all map[T]string) (n names) {
	for code, name := range all {
		if int(code) < len(n) {
			n[code] = name
		}
	}
	return n
}

// All that is asked for often has a low number; for the rest there are the maps.
var typeNames, classNames, rcodeNames = namesOf(dns.TypeToString), namesOf(dns.ClassToString), namesOf(dns.RcodeToString)

// of is the name of a code, "" if it is none of the lowest, or has no name.
func (n *names) of(code int) string {
	if uint(code) < uint(len(n)) {
		return n[code]
	}
	return ""
}

// appendType appends the name of a type, or TYPE and its number (RFC 3597 §5); appendClass does so for a class.
func appendType(b []byte, t uint16) []byte {
	if name := typeNames.of(int(t)); name != "" {
		return append(b, name...)
	}
	if name, ok := dns.TypeToString[t]; ok {
		return append(b, name...)
	}
	return appendInt(append(b, "TYPE"...), int(t))
}

func appendClass(b []byte, c uint16) []byte {
	if name := classNames.of(int(c)); name != "" {
		return append(b, name...)
	}
	if name, ok := dns.ClassToString[c]; ok {
		return append(b, name...)
	}
	return appendInt(append(b, "CLASS"...), int(c))
}

// appendHost appends an address without its port, one of IPv6 in brackets.
func appendHost(b []byte, ap netip.AddrPort, other net.Addr) []byte {
	addr := ap.Addr()
	switch {
	case addr.Is4():
		a := addr.As4()
		b = append(appendInt(b, int(a[0])), '.')
		b = append(appendInt(b, int(a[1])), '.')
		b = append(appendInt(b, int(a[2])), '.')
		return appendInt(b, int(a[3]))
	case addr.IsValid():
		b = addr.AppendTo(append(b, '['))
		return append(b, ']')
	case other != nil:
		host, _, err := net.SplitHostPort(other.String())
		if err != nil {
			host = other.String()
		}
		return append(b, host...)
	}
	return append(b, EmptyValue...)
}

// appendPort appends the port of an address, 0 if it has none.
func appendPort(b []byte, ap netip.AddrPort, other net.Addr) []byte {
	if ap.IsValid() {
		return appendInt(b, int(ap.Port()))
	}
	if other != nil {
		if _, port, err := net.SplitHostPort(other.String()); err == nil {
			return append(b, port...)
		}
	}
	return append(b, '0')
}

// appendRcode appends the name of the return code, its number if it has none, or EmptyValue without a reply.
func appendRcode(b []byte, f *Facts) []byte {
	if !f.Reply.Written {
		return append(b, EmptyValue...)
	}
	if name := rcodeNames.of(f.Reply.Rcode); name != "" {
		return append(b, name...)
	}
	if name, ok := dns.RcodeToString[f.Reply.Rcode]; ok {
		return append(b, name...)
	}
	return appendInt(b, f.Reply.Rcode)
}

// flagNames are the header's bits in the order in which they are told.
var flagNames = [...]struct {
	bit  uint16
	name string
}{
	{wire.FlagQR, "qr"}, {wire.FlagAA, "aa"}, {wire.FlagTC, "tc"}, {wire.FlagRD, "rd"},
	{wire.FlagRA, "ra"}, {wire.FlagZ, "z"}, {wire.FlagAD, "ad"}, {wire.FlagCD, "cd"},
}

// flagTexts are the names of all sets of flags, with commas between them, by flagIndex.
var flagTexts = func() (all [1 << len(flagNames)]string) {
	for i := range all {
		var names []string
		for _, flag := range flagNames {
			if flagIndex(flag.bit)&i != 0 {
				names = append(names, flag.name)
			}
		}
		if all[i] = strings.Join(names, ","); i == 0 {
			all[i] = EmptyValue
		}
	}
	return all
}()

// flagIndex is a header's second word without opcode and return code: what is left are eight bits.
func flagIndex(flags uint16) int { return int(flags>>15<<7 | flags>>4&0x7F) }

// appendFlags appends the names of the reply's flags, or EmptyValue if there are none.
func appendFlags(b []byte, f *Facts) []byte {
	if !f.Reply.Written {
		return append(b, EmptyValue...)
	}
	return append(b, flagTexts[flagIndex(f.Reply.Flags)]...)
}

// appendReplySize appends the length of the reply: 0 if the query was dropped, EmptyValue if nothing is known.
func appendReplySize(b []byte, f *Facts) []byte {
	if !f.Reply.Over {
		return append(b, EmptyValue...)
	}
	return appendInt(b, f.Reply.Len)
}

// appendDuration appends seconds, without an exponent.
func appendDuration(b []byte, f *Facts) []byte {
	if !f.Reply.Over {
		return append(b, EmptyValue...)
	}
	if d := f.Reply.Duration; 0 < d && d < time.Second {
		return append(appendFraction(b, uint32(d)), 's')
	}
	return append(strconv.AppendFloat(b, f.Reply.Duration.Seconds(), 'f', -1, 64), 's')
}

// appendFraction appends n thousand millionths, of which there are fewer than that and at least one. So few digits
// are those of the floating point number, too.
func appendFraction(b []byte, n uint32) []byte {
	var digits [9]byte
	last := 0
	for i := 8; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		if last == 0 && n%10 != 0 {
			last = i + 1
		}
		n /= 10
	}
	return append(append(b, "0."...), digits[:last]...)
}
