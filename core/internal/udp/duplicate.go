package udp

import "net"

// duplicate is another descriptor of the same socket.
func duplicate(c *net.UDPConn) *net.UDPConn {
	file, err := c.File()
	if err != nil {
		return nil
	}
	defer file.Close()
	p, err := net.FilePacketConn(file)
	if err != nil {
		return nil
	}
	return p.(*net.UDPConn)
}
