package sockcall

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// refusal is whether the system refuses a call, in favour of another one. A firewall may refuse single packets with the
// same error: so the call is given up only if it has never worked, and the other one did at that moment.
type refusal struct{ state atomic.Uint32 }

// States of a refusal. From unknown it goes to one of the others, and stays there: a sandbox does not change while a
// program runs in it.
const (
	unknown = iota
	works   // it came to anything but a refusal
	refused // the other one is called at once
)

func (r *refusal) refused() bool { return r.state.Load() == refused }

// suspected reports whether e, which the call came to, may be a refusal, so that the other one is to be tried.
func (r *refusal) suspected(e syscall.Errno) bool {
	if e != unix.EPERM && e != unix.ENOSYS {
		if r.state.Load() != works {
			r.state.Store(works)
		}
		return false
	}
	return r.state.Load() != works
}

// settle notes what the other one came to, where the call was suspected.
func (r *refusal) settle(e syscall.Errno) {
	if e == 0 {
		r.state.Store(refused)
	}
}
