//go:build !linux

package nonblock

import "net"

// Conn is conn.
func Conn(conn net.Conn) net.Conn { return conn }

// QuickAck does nothing.
func QuickAck(net.Conn, bool) {}
