//go:build amd64 || arm64

package readahead

import "unsafe"

// Works says whether there is an instruction for Line.
const Works = true

// line is Line, in assembly.
//
//go:noescape
func line(p unsafe.Pointer)
