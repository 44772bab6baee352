//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package reuseport

import (
	"errors"
	"syscall"

	"github.com/libp2p/go-reuseport"
)

// share lets sockets share the address.
func share(network, addr string, c syscall.RawConn) error { return reuseport.Control(network, addr, c) }

// takeBoth leaves the families of a socket to package net.
func takeBoth(string, string, syscall.RawConn) error { return errors.ErrUnsupported }

// keepAlive has package net set what it sets by default on each connection.
const keepAlive = 0
