// Package rcode writes response codes as text, for log lines and metric labels. Start at ToString.
package rcode

import (
	"strconv"

	"github.com/miekg/dns"
)

// ToString returns the mnemonic of rcode, for instance "NXDOMAIN", or RCODEn for a code without one.
//
// The code may be an extended one (RFC 6891 §6.1.3). 16 is written BADSIG, the older of its two names,
// because log lines and metric labels have always shown it so.
func ToString(rcode int) string {
	if name, ok := dns.RcodeToString[rcode]; ok {
		return name
	}
	return "RCODE" + strconv.Itoa(rcode)
}
