package proxyproto

import (
	"net"
	"net/netip"
)

// Addr is the address of a client whose datagram came by way of a proxy. It has two sides: to the one who asks, it is
// the client's; PacketConn.WriteTo takes it for the proxy's. So hand the very Addr that ReadFrom gave to WriteTo, and
// show Client to whoever asks for the client, since much code wants a *net.UDPAddr.
//
// An Addr does not change.
type Addr struct {
	client net.UDPAddr
	ip     [16]byte // what client.IP is a part of
	peer   net.Addr
}

// newAddr returns the address of client, who is to be answered by way of peer.
func newAddr(client netip.AddrPort, peer net.Addr) *Addr {
	a := &Addr{peer: peer}
	a.client.Port = int(client.Port())
	if ip := client.Addr(); ip.Is4() {
		four := ip.As4()
		a.client.IP = a.ip[:copy(a.ip[:], four[:])]
	} else {
		a.ip = ip.As16()
		a.client.IP = a.ip[:]
	}
	return a
}

// Network returns "udp".
func (a *Addr) Network() string { return a.client.Network() }

// String returns the client's address as HOST:PORT.
func (a *Addr) String() string { return a.client.String() }

// Client returns the client's address. It belongs to a and must not be changed.
func (a *Addr) Client() *net.UDPAddr { return &a.client }
