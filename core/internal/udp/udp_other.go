//go:build !linux

package udp

import "net"

const replySpace = 1536

// open serves all queries on one socket.
func (t *Transport) open(conn *net.UDPConn) { t.sockets = []batchSocket{newPortableSocket(conn)} }

// openDirect and openLater do nothing: there are no such sockets.
func (t *Transport) openDirect() {}
func (t *Transport) openLater()  {}

// pathScratch is not needed.
type pathScratch struct{}

// extraSockets are none.
type extraSockets struct{}

func (*extraSockets) giveUp()    {}
func (*extraSockets) quit() bool { return false }

// OpenEarly and DropUnused have nothing to do: there are no further sockets.
func OpenEarly(string) {}
func DropUnused()      {}
