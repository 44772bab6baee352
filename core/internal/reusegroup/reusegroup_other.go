//go:build !linux

package reusegroup

import "syscall"

// New is nil: the system is not told which socket gets a datagram.
func New(syscall.Conn, bool) *Group { return nil }

// Join is the loop of a socket that is in no group.
func (g *Group) Join(uintptr) Loop { return Loop{} }
