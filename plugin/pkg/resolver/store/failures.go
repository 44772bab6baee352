package store

// Failures is questions that could not be answered (RFC 9520): for a while nobody is asked for them.
type Failures struct{ shelf shelf[key, Failure] }

// Failure is how a question failed.
type Failure struct {
	Code  uint16 // extended error (RFC 8914)
	Text  string
	Times int
	Until Time // nobody is asked before
}

const (
	firstFailure  = 5 * Second
	longFailure   = 300 * Second
	unsentFailure = Second
)

// Get is the failure of a question, if it is still kept.
func (s *Failures) Get(name string, typ uint16, now Time) (f Failure, ok bool) {
	f, ok = s.shelf.get(keyOf(name, typ))
	return f, ok && f.Until > now
}

// Note keeps that a question failed: for 5 s, twice as long each time after that, 5 m at most (RFC 9520 §3.2). Who
// fails while a failure is kept asked before it was: it is the same one.
func (s *Failures) Note(name string, typ uint16, code uint16, text string, now Time) {
	s.shelf.update(keyOf(name, typ), func(old Failure, ok bool) (Failure, bool) {
		f := Failure{Code: code, Text: text, Times: 1}
		switch {
		case ok && old.Until > now:
			f.Times = max(old.Times, 1)
		case ok && old.Until+longFailure > now:
			f.Times = old.Times + 1
		}
		f.Until = now + min(firstFailure<<min(f.Times-1, 8), longFailure)
		return f, true
	})
}

// Unsent keeps for a second, the least that RFC 9520 §3.2 allows, that a question failed as this machine could not ask:
// it may be able to at any moment, however long it was not. A failure that is kept already stays as it is.
func (s *Failures) Unsent(name string, typ uint16, code uint16, text string, now Time) {
	s.shelf.update(keyOf(name, typ), func(old Failure, ok bool) (Failure, bool) {
		if ok && old.Until > now {
			return old, true
		}
		return Failure{Code: code, Text: text, Times: old.Times, Until: now + unsentFailure}, true
	})
}

// Forget forgets the failure of a question: it was answered.
func (s *Failures) Forget(name string, typ uint16) {
	s.shelf.remove(keyOf(name, typ))
}

// ForgetIf forgets the failures of questions that f reports true for.
func (s *Failures) ForgetIf(f func(name string, typ uint16) bool) int {
	return s.shelf.removeIf(func(k key, _ Failure) bool { return f(k.name, k.typ) })
}

// Total is the number of failures and their octets.
func (s *Failures) Total() (n int, octets int64) { return s.shelf.total() }
