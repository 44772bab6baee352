//go:build !unix

package coremain

import "os"

// keepOwner has nothing to keep: a file has no such owner.
func keepOwner(*os.File, os.FileInfo) {}
