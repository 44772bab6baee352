// Package msg fills in dnstap messages. Start at SetType.
package msg

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"

	tap "github.com/dnstap/golang-dnstap"
)

var errAddress = errors.New("unknown address type")

// SetQueryAddress sets who asked: address and port, and with them the family and the protocol of the socket, UDP or
// TCP. Addresses that are neither of UDP nor of TCP are an error.
func SetQueryAddress(t *tap.Message, addr net.Addr) error {
	a, protocol, err := addressOf(addr)
	if err != nil {
		return err
	}
	family := familyOf(a.Addr())
	ip, port := a.Addr().AsSlice(), uint32(a.Port())
	t.SocketFamily, t.SocketProtocol, t.QueryAddress, t.QueryPort = &family, &protocol, ip, &port
	return nil
}

// SetResponseAddress sets who was asked, as SetQueryAddress does.
func SetResponseAddress(t *tap.Message, addr net.Addr) error {
	a, protocol, err := addressOf(addr)
	if err != nil {
		return err
	}
	family := familyOf(a.Addr())
	ip, port := a.Addr().AsSlice(), uint32(a.Port())
	t.SocketFamily, t.SocketProtocol, t.ResponseAddress, t.ResponsePort = &family, &protocol, ip, &port
	return nil
}

func addressOf(addr net.Addr) (a netip.AddrPort, p tap.SocketProtocol, err error) {
	switch addr := addr.(type) {
	case *net.UDPAddr:
		a, p = addr.AddrPort(), tap.SocketProtocol_UDP
	case *net.TCPAddr:
		a, p = addr.AddrPort(), tap.SocketProtocol_TCP
	}
	if !a.IsValid() {
		return a, p, errAddress
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), p, nil
}

func familyOf(a netip.Addr) tap.SocketFamily {
	if a.Is4() {
		return tap.SocketFamily_INET
	}
	return tap.SocketFamily_INET6
}

// SetQueryTime sets when the query was received or sent.
func SetQueryTime(t *tap.Message, ti time.Time) {
	sec, nsec := timeOf(ti)
	t.QueryTimeSec, t.QueryTimeNsec = &sec, &nsec
}

// SetResponseTime sets when the response was sent or received.
func SetResponseTime(t *tap.Message, ti time.Time) {
	sec, nsec := timeOf(ti)
	t.ResponseTimeSec, t.ResponseTimeNsec = &sec, &nsec
}

func timeOf(t time.Time) (sec uint64, nsec uint32) { return uint64(t.Unix()), uint32(t.Nanosecond()) }

// SetType sets what kind of message it is.
func SetType(t *tap.Message, typ tap.Message_Type) { t.Type = &typ }

// SetProtocol sets the protocol, if it is one that is not plain UDP or TCP: addresses do not tell it. scheme is one of
// package transport.
func SetProtocol(t *tap.Message, scheme string) {
	if p, ok := ProtocolOf(scheme); ok {
		t.SocketProtocol = &p
	}
}

// ProtocolOf returns the protocol of a scheme of package transport, false if that is plain UDP or TCP, or has none.
func ProtocolOf(scheme string) (tap.SocketProtocol, bool) {
	switch scheme {
	case transport.TLS:
		return tap.SocketProtocol_DOT, true
	case transport.HTTPS, transport.HTTPS3:
		return tap.SocketProtocol_DOH, true
	case transport.QUIC:
		return ProtocolDOQ, true
	}
	return 0, false
}

// ProtocolDOQ is DNS over QUIC (RFC 9250), which the library's version of the definition does not name yet.
const ProtocolDOQ = tap.SocketProtocol(7)
