package test

import (
	"net"

	"github.com/miekg/dns"
)

// Where queries of a ResponseWriter come from, unless it says otherwise.
const (
	remoteIP   = "10.240.0.1"
	remoteIP6  = "fe80::42:ff:feca:4c65"
	remotePort = 40212
	localPort  = 53
)

// ResponseWriter is a dns.ResponseWriter that takes everything and keeps nothing. Its client is 10.240.0.1:40212 over UDP
// and the server 127.0.0.1:53.
type ResponseWriter struct {
	TCP      bool   // over TCP instead
	RemoteIP string // of the client instead
	Zone     string // of the client's IPv6 address
}

// LocalAddr returns 127.0.0.1:53.
func (t *ResponseWriter) LocalAddr() net.Addr {
	return t.addr(net.IPv4(127, 0, 0, 1).To4(), localPort, "")
}

// RemoteAddr returns the client's address.
func (t *ResponseWriter) RemoteAddr() net.Addr {
	text := t.RemoteIP
	if text == "" {
		text = remoteIP
	}
	ip := net.ParseIP(text)
	if four := ip.To4(); four != nil {
		ip = four
	}
	return t.addr(ip, remotePort, t.Zone)
}

func (t *ResponseWriter) addr(ip net.IP, port int, zone string) net.Addr {
	if t.TCP {
		return &net.TCPAddr{IP: ip, Port: port, Zone: zone}
	}
	return &net.UDPAddr{IP: ip, Port: port, Zone: zone}
}

// Network returns "".
func (t *ResponseWriter) Network() string { return "" }

// WriteMsg does nothing.
func (t *ResponseWriter) WriteMsg(m *dns.Msg) error { return nil }

// Write says that all of buf was written.
func (t *ResponseWriter) Write(buf []byte) (int, error) { return len(buf), nil }

// Close does nothing.
func (t *ResponseWriter) Close() error { return nil }

// TsigStatus returns nil.
func (t *ResponseWriter) TsigStatus() error { return nil }

// TsigTimersOnly does nothing.
func (t *ResponseWriter) TsigTimersOnly(bool) {}

// Hijack does nothing.
func (t *ResponseWriter) Hijack() {}

// ResponseWriter6 is a ResponseWriter whose client is fe80::42:ff:feca:4c65 and the server ::1.
type ResponseWriter6 struct {
	ResponseWriter
}

// LocalAddr returns [::1]:53.
func (t *ResponseWriter6) LocalAddr() net.Addr { return t.addr(net.IPv6loopback, localPort, "") }

// RemoteAddr returns the client's address.
func (t *ResponseWriter6) RemoteAddr() net.Addr {
	return t.addr(net.ParseIP(remoteIP6), remotePort, t.Zone)
}
