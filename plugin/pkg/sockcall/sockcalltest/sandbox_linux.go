// Package sockcalltest makes a sandbox which refuses the system calls that this server prefers, and others do not make.
// Start at Refuse.
package sockcalltest

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Refuse has the system refuse, with e, the calls for which there are others: to all threads of the process and the
// programs that it starts, or to this thread only, on which the goroutine must be locked until its end.
func Refuse(e syscall.Errno, everywhere bool) error {
	return RefuseCalls(e, everywhere, unix.SYS_RECVMMSG, unix.SYS_SENDMMSG, unix.SYS_RECVFROM, unix.SYS_SENDTO)
}

// RefuseCalls is Refuse for calls of those numbers.
func RefuseCalls(e syscall.Errno, everywhere bool, calls ...uint32) error {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number of the call
	for i, c := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: c, Jt: uint8(len(calls) - i)})
	}
	filter = append(filter,
		// Behind them stands what becomes of all others, and of them.
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(e)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Who is not root may filter only what gains no rights.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	flags := 0
	if everywhere {
		flags = unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
