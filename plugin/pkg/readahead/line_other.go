//go:build !amd64 && !arm64

package readahead

import "unsafe"

// Works says whether there is an instruction for Line.
const Works = false

func line(unsafe.Pointer) {}
