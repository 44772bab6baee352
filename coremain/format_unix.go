//go:build unix

package coremain

import (
	"os"
	"syscall"
)

// keepOwner gives f the owner and the group of another file, as far as this user may: who formats a Corefile, such as
// root, may be another one than the server.
func keepOwner(f *os.File, of os.FileInfo) {
	s, ok := of.Sys().(*syscall.Stat_t)
	if ok && f.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = f.Chown(-1, int(s.Gid)) // the user's, in one of his groups
	}
}
