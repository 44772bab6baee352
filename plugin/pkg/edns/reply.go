package edns

import "github.com/miekg/dns"

// ReplySize returns the UDP payload size, in octets, that a reply's OPT record tells a client that advertised
// size: our own, but not more than the client (or a plugin that lowered its size) has, and never below 512.
func ReplySize(size uint16) uint16 { return min(DefaultSize, max(size, dns.MinMsgSize)) }

// Repeated tells whether an option of a query is answered by the same option in the reply: NSID and EXPIRE, which
// ask and so are told that they were read, and the codes of SetSupportedOption. Cookies, keepalive and
// padding are none of them: they are between a client and whoever answers it, and have answers of their own.
func Repeated(option uint16) bool {
	return option == dns.EDNS0NSID || option == dns.EDNS0EXPIRE || SupportedOption(option)
}
