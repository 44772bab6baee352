package neterr

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/windows"
)

// numbers are Windows' own for what package syscall has invented numbers for.
var numbers = map[syscall.Errno]syscall.Errno{
	syscall.EADDRINUSE:    windows.WSAEADDRINUSE,
	syscall.EADDRNOTAVAIL: windows.WSAEADDRNOTAVAIL,
	syscall.ECONNREFUSED:  windows.WSAECONNREFUSED,
	syscall.ECONNRESET:    windows.WSAECONNRESET,
	syscall.EHOSTUNREACH:  windows.WSAEHOSTUNREACH,
	syscall.EINVAL:        windows.WSAEINVAL,
	syscall.ENETDOWN:      windows.WSAENETDOWN,
	syscall.ENETUNREACH:   windows.WSAENETUNREACH,
	syscall.EPIPE:         windows.WSAECONNABORTED, // of a connection that the peer has reset
}

// system is what the system itself calls an error.
func system(e syscall.Errno) syscall.Errno { return cmp.Or(numbers[e], e) }
