// Package nonblock reads and writes TCP connections with less work for Go's scheduler.
//
// A read or write of the package net tells the scheduler before and after that the system is at work, because it
// might take long. On a socket that does not block it never does: what waits is the poller. For the few octets of a
// DNS message that costs more than the call itself, so the connections of this package leave it out. All else is as
// net does it: deadlines, closing, errors and their texts.
//
// On systems other than Linux connections are as they are. Start at Conn.
package nonblock

import "net"

// Conn is conn, or, if it is a *net.TCPConn, one that reads and writes as this package does. It must not be used
// beside what is returned, but for being closed and having its deadlines set. No connection is none.
func Conn(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return of(tcp)
	}
	return conn
}
