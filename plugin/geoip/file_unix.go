//go:build unix

package geoip

import "golang.org/x/sys/unix"

// room is size octets beside Go's heap, which would take as much again before it is collected, and how to give them back.
func room(size int) (b []byte, free func()) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return make([]byte, size), func() {}
	}
	return b, func() { _ = unix.Munmap(b) }
}
