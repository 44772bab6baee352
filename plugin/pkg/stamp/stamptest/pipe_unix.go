//go:build unix

package stamptest

import "golang.org/x/sys/unix"

// makePipe makes a named pipe (mkfifo(3)).
func makePipe(path string) error { return unix.Mkfifo(path, 0o600) }
