package wire

import "encoding/binary"

// EDNS is an OPT record (RFC 6891 §6.1.2).
type EDNS struct {
	Present bool
	Size    uint16 // the sender's UDP size as written
	Flags   uint16 // DO and the Z bits
	Options []byte // code, length, data, one after the other, as they came
	Set     OptionSet
}

// OptionSet is which options an OPT record holds.
type OptionSet uint16

const (
	HasNSID OptionSet = 1 << iota
	HasECS
	HasExpire
	HasCookie
	HasKeepalive
	HasPadding
	HasOther // any that is not named here
)

// Codes of EDNS options.
const (
	OptionLLQ         = 1
	OptionUL          = 2
	OptionNSID        = 3
	OptionECS         = 8
	OptionExpire      = 9
	OptionCookie      = 10
	OptionKeepalive   = 11
	OptionPadding     = 12
	OptionEDE         = 15
	OptionReporting   = 18
	OptionZoneVersion = 19
)

// OPTFlagDO is the DO bit among an OPT record's flags (RFC 3225).
const OPTFlagDO = 1 << 15

// DO reports whether the record asks for DNSSEC records.
func (e *EDNS) DO() bool { return e.Flags&OPTFlagDO != 0 }

// SetDO sets or clears the DO bit.
func (e *EDNS) SetDO(on bool) {
	if e.Flags &^= OPTFlagDO; on {
		e.Flags |= OPTFlagDO
	}
}

// parse reads b as one OPT record of version 0 that ends where b ends.
func (e *EDNS) parse(b []byte) bool {
	const fixed = 11 // root, type, class, TTL, length
	if len(b) < fixed || b[0] != 0 || binary.BigEndian.Uint16(b[1:]) != TypeOPT {
		return false
	}
	version := b[6]
	if version != 0 || int(binary.BigEndian.Uint16(b[9:])) != len(b)-fixed {
		return false
	}
	set, ok := scanOptions(b[fixed:])
	if !ok {
		return false
	}
	*e = EDNS{
		Present: true,
		Size:    binary.BigEndian.Uint16(b[3:]),
		Flags:   binary.BigEndian.Uint16(b[7:]),
		Options: b[fixed:],
		Set:     set,
	}
	return true
}

// scanOptions walks options and checks their data as far as github.com/miekg/dns
// does when it reads them; what it would refuse, or what is too odd to check
// here, is refused.
func scanOptions(b []byte) (set OptionSet, ok bool) {
	for len(b) > 0 {
		if len(b) < 4 {
			return 0, false
		}
		code, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return 0, false
		}
		data := b[4 : 4+n]
		switch code {
		case OptionLLQ, OptionUL, OptionEDE, OptionReporting, OptionZoneVersion:
			return 0, false // nothing that a query holds
		case OptionNSID:
			set |= HasNSID
		case OptionECS:
			if !validECS(data) {
				return 0, false
			}
			set |= HasECS
		case OptionExpire:
			if n != 0 && n != 4 { // of a longer one, four octets are taken
				return 0, false
			}
			set |= HasExpire
		case OptionCookie:
			if !CookieSized(n) {
				return 0, false
			}
			set |= HasCookie
		case OptionKeepalive:
			if n != 0 && n != 2 {
				return 0, false
			}
			set |= HasKeepalive
		case OptionPadding:
			set |= HasPadding
		default:
			set |= HasOther
		}
		b = b[4+n:]
	}
	return set, true
}

// validECS checks a client subnet option (RFC 7871 §6): family, prefix lengths, and that the address is as long as the
// source's prefix. What has another length, the message lane brings into shape, or refuses.
func validECS(b []byte) bool {
	if len(b) < 4 || len(b) != 4+(int(b[2])+7)/8 {
		return false
	}
	switch binary.BigEndian.Uint16(b) {
	case 0:
		return b[2] == 0
	case 1:
		return b[2] <= 32 && b[3] <= 32
	case 2:
		return b[2] <= 128 && b[3] <= 128
	}
	return false
}

// Option is the data of the first option with a code, and whether there is one.
func (e *EDNS) Option(code uint16) (data []byte, ok bool) {
	for b := e.Options; len(b) >= 4; {
		n := int(binary.BigEndian.Uint16(b[2:]))
		if binary.BigEndian.Uint16(b) == code {
			return b[4 : 4+n], true
		}
		b = b[4+n:]
	}
	return nil, false
}

// Append appends the record to b.
func (e *EDNS) Append(b []byte) []byte {
	b = appendOPT(b, e.Size, 0, e.Flags, len(e.Options))
	return append(b, e.Options...)
}

// appendOPT appends an OPT record of version 0 up to the length of its options.
func appendOPT(b []byte, size uint16, extRcode byte, flags uint16, options int) []byte {
	b = append(b, 0, 0, TypeOPT, byte(size>>8), byte(size), extRcode, 0, byte(flags>>8), byte(flags))
	return binary.BigEndian.AppendUint16(b, uint16(options))
}

// AppendOption appends one option to b.
func AppendOption(b []byte, code uint16, data []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// AppendEDE appends an extended error to b (RFC 8914 §2).
func AppendEDE(b []byte, code uint16, text string) []byte {
	b = binary.BigEndian.AppendUint16(b, OptionEDE)
	b = binary.BigEndian.AppendUint16(b, uint16(2+len(text)))
	b = binary.BigEndian.AppendUint16(b, code)
	return append(b, text...)
}
