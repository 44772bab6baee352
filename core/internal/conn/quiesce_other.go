//go:build !linux

package conn

import "net"

// Quiesce does nothing where the system has no means for it.
func Quiesce(net.Listener) {}

// littleUnsent does nothing there, either.
func littleUnsent(net.Listener) {}
