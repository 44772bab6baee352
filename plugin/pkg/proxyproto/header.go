package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"
)

// header is what a PROXY protocol header says.
type header struct {
	// relayed is false if the proxy sends the datagram on its own behalf (the command LOCAL).
	relayed bool
	client  netip.AddrPort
}

// Layout of a header of version 2: signature, version and command, family and transport, length of the rest.
const (
	commandOffset   = 12
	transportOffset = 13
	lengthOffset    = 14
	fixedSize       = 16
)

// How long the rest is at least: two addresses, two ports.
const (
	udp4Size = 4 + 4 + 2 + 2
	udp6Size = 16 + 16 + 2 + 2
)

// errNotUDP says that a header in a datagram speaks of another transport than UDP.
var errNotUDP = errors.New("the header is not that of a UDP datagram")

// parseHeader splits datagram into its header of version 2 and what follows it. If there is no such header the error is
// proxyproto.ErrNoProxyProtocol. Additional fields (TLVs) are skipped. payload is a part of datagram. parseHeader does
// not allocate.
func parseHeader(datagram []byte) (h header, payload []byte, err error) {
	if !bytes.HasPrefix(datagram, proxyproto.SIGV2) {
		return header{}, nil, proxyproto.ErrNoProxyProtocol
	}
	if len(datagram) < fixedSize {
		return header{}, nil, proxyproto.ErrCantReadLength
	}
	length := int(binary.BigEndian.Uint16(datagram[lengthOffset:]))
	if len(datagram) < fixedSize+length {
		return header{}, nil, proxyproto.ErrInvalidLength
	}
	rest, payload := datagram[fixedSize:fixedSize+length], datagram[fixedSize+length:]

	switch proxyproto.ProtocolVersionAndCommand(datagram[commandOffset]) {
	case proxyproto.LOCAL: // whatever addresses there are do not count
		return header{}, payload, nil
	case proxyproto.PROXY:
	default:
		return header{}, nil, proxyproto.ErrUnsupportedProtocolVersionAndCommand
	}
	client, err := source(proxyproto.AddressFamilyAndProtocol(datagram[transportOffset]), rest)
	if err != nil {
		return header{}, nil, err
	}
	return header{relayed: true, client: client}, payload, nil
}

// source reads the client's address and port.
func source(transport proxyproto.AddressFamilyAndProtocol, rest []byte) (netip.AddrPort, error) {
	var addr netip.Addr
	switch transport {
	case proxyproto.UDPv4:
		if len(rest) < udp4Size {
			return netip.AddrPort{}, proxyproto.ErrInvalidLength
		}
		addr = netip.AddrFrom4([4]byte(rest[:4]))
		rest = rest[8:]
	case proxyproto.UDPv6:
		if len(rest) < udp6Size {
			return netip.AddrPort{}, proxyproto.ErrInvalidLength
		}
		// An IPv4 client may come mapped, from a proxy that listens for both families on one socket.
		addr = netip.AddrFrom16([16]byte(rest[:16])).Unmap()
		rest = rest[32:]
	default:
		return netip.AddrPort{}, errNotUDP
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(rest)), nil
}
