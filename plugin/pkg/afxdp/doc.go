// Package afxdp takes the UDP datagrams for an address from a network interface before the kernel's network stack has
// seen them (AF_XDP), and puts replies on its wire. Linux only.
//
//	interface ──program──▶ not for us: the kernel, as without
//	              └── queue's Socket ──Receive──▶ Datagram ──▶ Space, Answer ──Send──▶ interface
//
// A Device is the interface with the program; a Target is an address on it, with a Socket for each of the interface's
// queues. All sockets of a queue share its memory. What is to go another way than its query came, or is longer than
// MaxPayload, has to be sent by other means.
//
// Start at Open; frame.go has what is read and written.
package afxdp

import (
	"errors"
	"syscall"
)

// Taken reports whether an error of Open or Listen says that the interface has a program of somebody else, or a queue a
// socket: of another process, perhaps, that ends soon.
func Taken(err error) bool { return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EEXIST) }
