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

// Silence is how long somebody has said nothing while answers were waited for. Its owner has a lock for it. The zero
// Silence waits for none. Times are nanoseconds.
type Silence struct {
	waiting int
	since   int64 // the first that waits came, or something was heard
}

// Ask notes that one more answer is waited for.
func (s *Silence) Ask(now int64) {
	if s.waiting == 0 {
		s.since = now
	}
	s.waiting++
}

// Heard notes that something came.
func (s *Silence) Heard(now int64) { s.since = now }

// Done notes that one answer is waited for no more.
func (s *Silence) Done() { s.waiting-- }

// Longer reports whether the silence is longer than patience, such as Usual.Patience. Who is silent may be dead: what
// else there is to ask is best asked another way until something is heard.
func (s *Silence) Longer(patience time.Duration, now int64) bool {
	return s.waiting > 0 && now-s.since > int64(patience)
}
