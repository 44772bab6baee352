//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package reuseport

import "syscall"

// share does nothing: the system has no option that lets sockets share an address and their load.
func share(string, string, syscall.RawConn) error { return nil }

// keepAlive has package net set what it sets by default on each connection.
const keepAlive = 0
