//go:build !linux

package quicconn

import "net"

// ExpectFrom does nothing: there is no handover here.
func ExpectFrom(int, string) {}

// Packets is p, and false: there is no handover here.
func Packets(p net.PacketConn, _ string, _ <-chan struct{}) (net.PacketConn, bool) { return p, false }
