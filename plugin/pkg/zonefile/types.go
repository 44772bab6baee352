package zonefile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/miekg/dns"
)

// Types that have got a number since miekg/dns was given its names, or that it has none for.
const (
	typeDSYNC  = 66  // RFC 9859
	typeHHIT   = 67  // RFC 9886
	typeBRID   = 68  // RFC 9886
	typeWALLET = 262 // texts, as TXT
	typeCLA    = 263 // texts, as TXT
)

// types is the types that a file may hold, by mnemonic. Data of those without a format is written as RFC 3597 has it.
var types = func() map[string]uint16 {
	m := map[string]uint16{
		"WKS": 11, "NSAP": 22, "ATMA": 34, "A6": 38, "SINK": 40, "DSYNC": typeDSYNC, "HHIT": typeHHIT, "BRID": typeBRID, "DOA": 259,
		"WALLET": typeWALLET, "CLA": typeCLA, "IPN": 264,
	}
	for name, t := range dns.StringToType {
		m[name] = t
	}
	return m
}()

// appendNotified appends the type of a DSYNC record (RFC 9859 §2.2), as such or as a mere number, or its scheme: the
// one mnemonic, or a number.
func appendNotified(b []byte, kind byte, w word) ([]byte, error) {
	if kind == 'y' && bytes.EqualFold(w.text, []byte("NOTIFY")) {
		return append(b, 1), nil
	}
	if kind == 'y' {
		return appendField(b, 'b', w, nil)
	}
	if n, ok := parseNumber(w.text, math.MaxUint16); ok {
		return binary.BigEndian.AppendUint16(b, uint16(n)), nil
	}
	return appendField(b, 'T', w, nil)
}

// appendNXT appends the data of an NXT record (RFC 2535 §5.2): the next name, and one bitmap of types below 128.
func appendNXT(b []byte, words []word, origin []byte) ([]byte, error) {
	if len(words) == 0 {
		return b, errNoData
	}
	b, err := appendField(b, 'n', words[0], origin)
	if err != nil {
		return b, err
	}
	at := len(b)
	for _, w := range words[1:] {
		t, ok := parseType(w.text)
		if !ok || t == 0 || t > 127 {
			return b, unknownType(w.text)
		}
		for len(b)-at <= int(t>>3) {
			b = append(b, 0)
		}
		b[at+int(t>>3)] |= 0x80 >> (t & 7)
	}
	return b, nil
}
