package dnsutil

import (
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// TypeOf is the type that a text stands for: a mnemonic, or a number behind TYPE (RFC 3597 §5), in either case. It
// reports false if there is none.
func TypeOf(text string) (uint16, bool) {
	upper := strings.ToUpper(text)
	if t, ok := dns.StringToType[upper]; ok {
		return t, true
	}
	number, ok := strings.CutPrefix(upper, "TYPE")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return uint16(n), err == nil
}
