//go:build unix

package zonefile

import "golang.org/x/sys/unix"

// Writable reports whether files can be made in a folder, as far as that is known before it is tried.
func Writable(dir string) error { return unix.Access(dir, unix.W_OK) }
