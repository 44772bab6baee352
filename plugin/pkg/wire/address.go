package wire

import (
	"net"
	"net/netip"
)

// AddrScratch is memory for one address as a message's writer has it, in one piece.
type AddrScratch struct {
	addr net.UDPAddr
	ip   [net.IPv6len]byte
}

// Set returns a, as what net gives to those who use p: a *net.UDPAddr or *net.TCPAddr. It lies in r.
func (r *AddrScratch) Set(p Proto, a netip.AddrPort) net.Addr {
	r.ip = a.Addr().As16()
	r.addr = net.UDPAddr{IP: r.ip[:], Port: int(a.Port()), Zone: a.Addr().Zone()}
	switch {
	case a.Addr().Is4():
		r.addr.IP = r.ip[net.IPv6len-net.IPv4len:]
	case !a.Addr().IsValid():
		r.addr.IP = nil
	}
	if p == TCP {
		return (*net.TCPAddr)(&r.addr)
	}
	return &r.addr
}

// AddrOf is the address of a socket's peer, without its port; invalid if a is no such address.
func AddrOf(a net.Addr) netip.Addr { return PeerOf(a, nil).Client.Addr() }

// RemoteAddr is the client's address as a message's writer has it, LocalAddr the one that the query was sent to.
func (p *Peer) RemoteAddr() net.Addr { return new(AddrScratch).Set(p.Proto, p.Client) }
func (p *Peer) LocalAddr() net.Addr  { return new(AddrScratch).Set(p.Proto, p.Local) }
