//go:build !linux

package eventloop

import "runtime"

// Yield is for a goroutine that computes for long: between two pieces of its work it lets others run.
func Yield() { runtime.Gosched() }
