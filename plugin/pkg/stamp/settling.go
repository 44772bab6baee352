package stamp

import "time"

// Quiet is for how long a file that is looked at again and again must not have been changed before it is read: who
// writes it in its place may not have come to the end. It is half of the time between two looks, if that is less.
const Quiet = time.Second

// Settling tells of one file, or of several that are read together, whether they may still be written.
type Settling struct {
	since time.Time // when they were first left alone for that
	asked time.Time // when Wait was called last
}

// Wait is how long to wait before a file is read that was changed then and is looked at every so often; 0 if it may be
// read now. What is changed all the time is read as it is after as long again. A change in the future, by another's
// clock, says nothing.
func (s *Settling) Wait(changed, now time.Time, every time.Duration) time.Duration {
	if now.Sub(s.asked) > every+Quiet { // what was left alone then has been read by others since, or is gone
		s.since = time.Time{}
	}
	s.asked = now
	wait := min(Quiet, every/2) - now.Sub(changed)
	switch {
	case wait <= 0, now.Before(changed):
		s.since = time.Time{}
		return 0
	case s.since.IsZero():
		s.since = now
	case now.Sub(s.since) >= every:
		s.since = time.Time{}
		return 0
	}
	return wait
}
