//go:build !windows

package control

import "syscall"

// endSignal has the process end in good order.
const endSignal = syscall.SIGTERM
