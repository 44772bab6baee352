//go:build unix

package systemd

import "syscall"

// closeOnExec keeps a descriptor from programs that this one begins.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }
