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

// Silence is how long somebody has said nothing while others waited for his answers. Its owner has a lock for it, and
// calls Ask and Done for each question. Times are nanoseconds. The zero Silence waits for nothing.
type Silence struct {
	waiting int
	since   int64 // the first question of those that wait, or something that was heard
	missed  int   // questions, one after the other, whose answers nobody heard
}

// tooManyMissed are so many that those who asked may have been given up because there will be no answer.
const tooManyMissed = 3

// Ask notes a question.
func (s *Silence) Ask(now int64) {
	if s.waiting == 0 {
		s.since = now
	}
	s.waiting++
}

// Done notes that nobody waits any more for the answer to a question that was asked at a time, for which patience is
// enough time. If something came, Heard is to follow.
func (s *Silence) Done(asked, now int64, patience time.Duration) {
	s.waiting--
	if s.missed++; now-asked > int64(patience) {
		s.missed = tooManyMissed
	}
}

// Heard notes that something came.
func (s *Silence) Heard(now int64) { s.since, s.missed = now, 0 }

// Longer reports whether the silence is longer than patience, such as Usual.Patience. Who is silent may be dead: what
// else there is to ask is best asked another way until something is heard.
func (s *Silence) Longer(patience time.Duration, now int64) bool {
	return s.missed >= tooManyMissed || s.waiting > 0 && now-s.since > int64(patience)
}
