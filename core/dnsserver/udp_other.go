//go:build !linux

package dnsserver

import "net"

const replySpace = 1536

// open serves all queries on one socket.
func (u *udpTransport) open(conn *net.UDPConn) { u.sockets = []batchSocket{newPortableSocket(conn)} }

// backRoom is not needed.
type backRoom struct{}

// extraSockets are none.
type extraSockets struct{}

func (*extraSockets) giveUp() {}
