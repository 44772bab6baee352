// Package steadytest makes the times that a machine tells once its clock was set. Start at Stepped.
package steadytest

import (
	"time"
	"unsafe"
)

// Stepped is the time that the machine tells at t when its clock was set ahead by d, in whole seconds, or back if d is
// negative: the monotonic reading is as it was. Package time makes no such value, so it is made of the value's first
// word: nanoseconds, and seconds above them.
func Stepped(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(int64(d/time.Second) << 30)
	return t
}
