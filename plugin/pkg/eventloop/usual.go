package eventloop

import (
	"sync/atomic"
	"time"
)

// LeastPatience is how long a query waits, at least, before it gives way to another one, where there are too many.
const LeastPatience = 200 * time.Millisecond

// Usual is how long the answers of somebody take: about half of them come sooner. It is an estimate, which each answer
// moves by a small part. The zero Usual knows none.
type Usual struct{ time atomic.Int64 }

// Note notes how long an answer took.
func (u *Usual) Note(took time.Duration) {
	const part = 16
	m := max(u.time.Load(), int64(LeastPatience/2)) // less makes no difference
	if int64(took) > m {
		m += m / part
	} else {
		m -= m / part
	}
	u.time.Store(m)
}

// Patience is how long a query waits before it gives way: twice as long as answers usually take.
func (u *Usual) Patience() time.Duration {
	return max(LeastPatience, 2*time.Duration(u.time.Load()))
}
