package test

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// hearing keeps what a client has read last, which the package that it reads messages with does not tell.
type hearing interface{ lastRead() []byte }

type heard struct{ last []byte }

func (h *heard) lastRead() []byte { return h.last }

func (h *heard) note(b []byte, err error) {
	if err == nil {
		h.last = append(h.last[:0], b...)
	}
}

// heardPackets is a connection by which packets come.
type heardPackets struct {
	*net.UDPConn
	heard
}

// Read implements net.Conn.
func (c *heardPackets) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	c.note(b[:n], err)
	return n, err
}

// heardStream is one of octets. A message that comes in one piece is read in one.
type heardStream struct {
	net.Conn
	heard
}

// Read implements net.Conn.
func (c *heardStream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(b[:n], err)
	return n, err
}

// overhear makes a connection of a client tell what it has read.
func overhear(c net.Conn) net.Conn {
	if u, ok := c.(*net.UDPConn); ok {
		return &heardPackets{UDPConn: u}
	}
	return &heardStream{Conn: c}
}

// readByOthers fails the test if Go's own resolver could not read a reply. Other readers are less strict: of the pointers
// of a name that one follows ten.
func readByOthers(t *testing.T, name string, reply []byte) {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(reply); err != nil && !strings.HasSuffix(err.Error(), "invalid dns name") { // has a dot in a label
		t.Errorf("%s: Go's resolver cannot read %x: %v", name, reply, err)
	}
}
