//go:build !linux

package proxy

func newSockets(to receiver) (sockets, error) { return newPortableSockets(to) }
