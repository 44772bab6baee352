// Package msg fills in dnstap messages. Start at SetType.
package msg

import (
	"errors"
	"net"
	"net/netip"
	"time"

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
