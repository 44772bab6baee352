//go:build !windows

package neterr

import "syscall"

// system is what the system itself calls an error.
func system(e syscall.Errno) syscall.Errno { return e }
