// Package edns holds what the whole server must agree on about EDNS(0) (RFC 6891): which version it speaks,
// which payload sizes hold, and which options of a query may stand in the reply.
//
// Every function may be called from any number of goroutines at the same time. Start at Version.
package edns

import (
	"errors"
	"sync/atomic"

	"github.com/miekg/dns"
)

// DefaultSize is the UDP payload size, in octets, that the server advertises in its own OPT records
// (RFC 6891 §6.2.3). It fits an Ethernet frame under IPv6; the UDP listeners take longer queries, too.
const DefaultSize = 1232

// errBadVers says that a query asks for a version of EDNS that the server does not know.
var errBadVers = errors.New("EDNS0 BADVERS")

// supported has one bit for each option code that SetSupportedOption was given.
var supported [1 << 16 / 64]atomic.Uint64

// SetSupportedOption registers an option code, so that the option of a query is kept in the reply. It holds
// for the rest of the process. The codes that the server itself supports need no registration.
func SetSupportedOption(option uint16) { supported[option/64].Or(1 << (option % 64)) }

// SupportedOption tells whether the option code was registered with SetSupportedOption.
func SupportedOption(option uint16) bool { return supported[option/64].Load()&(1<<(option%64)) != 0 }

// Version checks the EDNS version that req asks for (RFC 6891 §6.1.3).
//
// For version 0, or without an OPT record, both results are nil. For any other version it returns the
// BADVERS reply to send, whose OPT record has version 0, DefaultSize and no flags, and an error. req is
// only read; the reply shares nothing with it.
func Version(req *dns.Msg) (*dns.Msg, error) {
	opt := req.IsEdns0()
	if opt == nil || opt.Version() == 0 {
		return nil, nil
	}
	reply := new(dns.Msg).SetReply(req)
	reply.SetEdns0(DefaultSize, false)
	reply.Rcode = dns.RcodeBadVers // its upper bits go to the OPT record when the reply is packed
	return reply, errBadVers
}

// Size returns how many octets a reply may have over proto, "udp" or "tcp", if the client advertises size:
// always 65535 over TCP, at least 512 over UDP (RFC 6891 §6.2.3).
func Size(proto string, size uint16) uint16 {
	if proto == "tcp" {
		return dns.MaxMsgSize
	}
	return max(size, dns.MinMsgSize)
}
