package clients

import (
	"net"
	"time"

	"github.com/miekg/dns"
)

// UDPClient asks over UDP.
type UDPClient struct{ Addr string }

// Close does nothing.
func (c UDPClient) Close() {}

// Dials is 0.
func (c UDPClient) Dials() int { return 0 }

// Ask implements Client.
func (c UDPClient) Ask(m *dns.Msg) (*dns.Msg, error) {
	r, _, err := (&dns.Client{Timeout: AskTime, UDPSize: 65535}).Exchange(m, c.Addr)
	return r, err
}

// Raw implements Client.
func (c UDPClient) Raw(b []byte) ([]byte, error) {
	conn, err := net.Dial("udp", c.Addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(AskTime))
	if _, err := conn.Write(b); err != nil {
		return nil, err
	}
	buf := make([]byte, 65535)
	n, err := conn.Read(buf)
	return buf[:n], err
}
