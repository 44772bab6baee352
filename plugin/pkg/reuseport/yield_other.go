//go:build !linux

package reuseport

import "net"

// Yield reports false: the system cannot be told.
func Yield(net.Listener) bool { return false }
