//go:build unix && !linux

package nonblock

import "syscall"

// batches are of one datagram each here, which is read by SyscallConn.
type batches struct{ raw syscall.RawConn }
