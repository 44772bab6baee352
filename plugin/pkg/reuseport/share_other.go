//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package reuseport

import (
	"errors"
	"syscall"
)

// share does nothing: the system has no option that lets sockets share an address and their load.
func share(string, string, syscall.RawConn) error { return nil }

// takeBoth leaves the families of a socket to package net.
func takeBoth(string, string, syscall.RawConn) error { return errors.ErrUnsupported }

// keepAlive has package net set what it sets by default on each connection.
const keepAlive = 0
