//go:build !unix

package nonblock

import "net"

// Packets is p.
func Packets(p net.PacketConn) net.PacketConn { return p }

// Keeper is nothing to do.
func Keeper(any) (keep func()) { return func() {} }
