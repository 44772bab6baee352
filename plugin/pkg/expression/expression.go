// Package expression holds the functions that the expressions of the view plugin, and of others that decide by
// expressions, may call.
//
//	view NAME { expr incidr(client_ip(), '192.0.2.0/24') && type() == 'A' }
//	                 ──────────────── DefaultEnv ────────────────
//
// Start at DefaultEnv.
package expression

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/request"
)

// DefaultEnv returns the functions by name, for the query of state. Nothing is worked out before a function is
// called. The functions belong to the goroutine that state belongs to; for compiling alone, ctx and state may be
// nil.
//
//	incidr(ip, cidr)       whether the address lies in the network; an error if they are none
//	metadata(label)        a label's value, "" if it is not there
//	type() name() class()  the question; name in lower case
//	proto()                udp or tcp
//	size() bufsize()       octets of the query, and that a reply may have
//	do() id() opcode()     header and EDNS bits
//	client_ip() port()     the client
//	server_ip() server_port()  where the query was sent to
func DefaultEnv(ctx context.Context, state *request.Request) map[string]any {
	return map[string]any{
		"incidr": inCIDR,
		"metadata": func(label string) string {
			if f := metadata.ValueFunc(ctx, label); f != nil {
				return f()
			}
			return ""
		},
		"type":        func() string { return state.Type() },
		"name":        func() string { return state.Name() },
		"class":       func() string { return state.Class() },
		"proto":       func() string { return state.Proto() },
		"size":        func() int { return state.Len() },
		"bufsize":     func() int { return state.Size() },
		"do":          func() bool { return state.Do() },
		"id":          func() int { return int(state.Req.Id) },
		"opcode":      func() int { return state.Req.Opcode },
		"client_ip":   func() string { return state.IP() },
		"port":        func() string { return state.Port() },
		"server_ip":   func() string { return state.LocalIP() },
		"server_port": func() string { return state.LocalPort() },
	}
}

// inCIDR reports whether the address ip lies in the network cidr. The zone of a link-local address does not count,
// and an IPv4 address may be written as one that is mapped to IPv6.
func inCIDR(ip, cidr string) (bool, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return false, fmt.Errorf("incidr: first argument is not an IP address: %w", err)
	}
	network, err := Network(cidr)
	if err != nil {
		return false, fmt.Errorf("incidr: second argument is not a CIDR: %w", err)
	}
	return network.Contains(addr.Unmap().WithZone("")), nil
}

// Network reads a network as incidr takes it. One of addresses that are mapped to IPv6 is that of the IPv4 addresses.
func Network(cidr string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(cidr)
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p, err
}
