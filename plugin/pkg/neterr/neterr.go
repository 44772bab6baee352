// Package neterr tells errors of sockets apart by the names that package syscall has for them everywhere. Windows has
// numbers of its own for these errors, which errors.Is does not find under those names. Start at Is.
package neterr

import (
	"errors"
	"syscall"
)

// Is reports whether err, or one that it wraps, is one of those errors. It costs little where a query has failed, and
// is not meant for those that do not.
func Is(err error, names ...syscall.Errno) bool {
	for _, e := range names {
		if errors.Is(err, e) || errors.Is(err, system(e)) {
			return true
		}
	}
	return false
}
