package zonefile

import (
	"bytes"

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

// appendScheme appends the scheme of a DSYNC record (RFC 9859 §2.2): the one mnemonic, or a number.
func appendScheme(b []byte, w word) ([]byte, error) {
	if bytes.EqualFold(w.text, []byte("NOTIFY")) {
		return append(b, 1), nil
	}
	return appendField(b, 'b', w, nil)
}
