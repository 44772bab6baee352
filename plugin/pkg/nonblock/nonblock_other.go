//go:build !linux

package nonblock

import "net"

func of(conn *net.TCPConn) net.Conn { return conn }
