package rrset

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file takes private addresses out of RRsets: those of one's own network, into
// which names of the world are not to lead (DNS rebinding). Which they are is for the
// caller to say.

// Addressed reports whether records of a type have addresses, or hints of them, in them.
func Addressed(typ uint16) bool {
	return typ == wire.TypeA || typ == wire.TypeAAAA || typ == typeSVCB || typ == typeHTTPS
}

// WithoutAddresses is s without addresses that are private for its name, s itself if there is none, nil if nothing is
// left.
func (s *Set) WithoutAddresses(private func(name string, a netip.Addr) bool) *Set {
	is := func(a string) bool { return private(s.Name, Address(a)) }
	switch s.Type {
	case wire.TypeA, wire.TypeAAAA:
		return s.Edited(func(rdata string) string {
			if is(rdata) {
				return ""
			}
			return rdata
		})
	case typeSVCB, typeHTTPS:
		return s.Edited(func(rdata string) string { return unhinted(rdata, is) })
	}
	return s
}

const (
	typeSVCB  = 64
	typeHTTPS = 65
)

// Keys of service parameters (RFC 9460 §14.3.2).
const (
	keyMandatory = 0
	keyIPv4Hint  = 4
	keyIPv6Hint  = 6
)

// unhinted is the RDATA of an SVCB or HTTPS record without those lists of hints that a private address is in: clients
// ask for the addresses, then (RFC 9460 §7.3). It is empty if such a list is mandatory.
func unhinted(rdata string, private func(string) bool) string {
	if len(rdata) < 3 {
		return rdata
	}
	n := wire.NameLen([]byte(rdata[2:]))
	if n == 0 {
		return rdata
	}
	out, mandatory := rdata[:2+n], ""
	for p := rdata[2+n:]; p != ""; {
		if len(p) < 4 {
			return rdata
		}
		key, end := uint16(p[0])<<8|uint16(p[1]), 4+int(p[2])<<8+int(p[3])
		if end > len(p) {
			return rdata
		}
		switch value := p[4:end]; {
		case key == keyMandatory:
			mandatory = value
			out += p[:end]
		case key == keyIPv4Hint && listed(value, 4, private), key == keyIPv6Hint && listed(value, 16, private):
			if listed(mandatory, 2, func(k string) bool { return k == p[:2] }) {
				return ""
			}
		default:
			out += p[:end]
		}
		p = p[end:]
	}
	return out
}

// listed reports whether is holds for one of the items of a list, which are of a size.
func listed(list string, size int, is func(string) bool) bool {
	for ; len(list) >= size; list = list[size:] {
		if is(list[:size]) {
			return true
		}
	}
	return false
}
