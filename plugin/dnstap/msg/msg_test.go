package msg

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"

	tap "github.com/dnstap/golang-dnstap"
)

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		addr     net.Addr
		family   tap.SocketFamily
		protocol tap.SocketProtocol
		ip       string
	}{
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 53}, tap.SocketFamily_INET, tap.SocketProtocol_UDP, "192.0.2.1"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 53}, tap.SocketFamily_INET, tap.SocketProtocol_TCP, "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 53}, tap.SocketFamily_INET6, tap.SocketProtocol_TCP, "2001:db8::1"},
	} {
		q, r := new(tap.Message), new(tap.Message)
		if err := SetQueryAddress(q, tc.addr); err != nil {
			t.Fatal(err)
		}
		if err := SetResponseAddress(r, tc.addr); err != nil {
			t.Fatal(err)
		}
		if q.GetSocketFamily() != tc.family || q.GetSocketProtocol() != tc.protocol || net.IP(q.QueryAddress).String() != tc.ip || q.GetQueryPort() != 53 {
			t.Errorf("%v: %v", tc.addr, q)
		}
		if r.GetSocketFamily() != tc.family || r.GetSocketProtocol() != tc.protocol || net.IP(r.ResponseAddress).String() != tc.ip || r.GetResponsePort() != 53 {
			t.Errorf("%v: %v", tc.addr, r)
		}
	}
	for _, addr := range []net.Addr{nil, &net.UnixAddr{}, &net.UDPAddr{}} {
		if SetQueryAddress(new(tap.Message), addr) == nil || SetResponseAddress(new(tap.Message), addr) == nil {
			t.Errorf("%v: no error", addr)
		}
	}
}

func TestTimesAndType(t *testing.T) {
	m := new(tap.Message)
	SetType(m, tap.Message_CLIENT_QUERY)
	SetQueryTime(m, time.Unix(17, 4))
	SetResponseTime(m, time.Unix(18, 5))
	if m.GetType() != tap.Message_CLIENT_QUERY || m.GetQueryTimeSec() != 17 || m.GetQueryTimeNsec() != 4 || m.GetResponseTimeSec() != 18 || m.GetResponseTimeNsec() != 5 {
		t.Error(m)
	}
}

func TestProtocols(t *testing.T) {
	udp := tap.SocketProtocol_UDP
	for scheme, want := range map[string]tap.SocketProtocol{
		transport.DNS: udp, transport.GRPC: udp, "": udp, transport.TLS: tap.SocketProtocol_DOT,
		transport.HTTPS: tap.SocketProtocol_DOH, transport.HTTPS3: tap.SocketProtocol_DOH, transport.QUIC: ProtocolDOQ,
	} {
		m := &tap.Message{SocketProtocol: &udp}
		if SetProtocol(m, scheme); m.GetSocketProtocol() != want {
			t.Errorf("%s: %v", scheme, m)
		}
	}
}
