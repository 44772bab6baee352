package status

import (
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// Failure is why a zone could not be read, or fetched, when its source was looked at last. The zero Failure is that it
// could. One goroutine notes at a time; any may ask.
type Failure struct{ last atomic.Pointer[failure] }

type failure struct {
	text  string
	since time.Time // when it began: the first of those without a success between them
}

// Note says how the last look ended, with nil if all is well.
func (f *Failure) Note(err error) {
	was := f.last.Load()
	switch {
	case err != nil:
		next := &failure{log.OneLine(err), time.Now()}
		if was != nil {
			next.since = was.since
		}
		f.last.Store(next)
	case was != nil:
		f.last.Store(nil)
	}
}

// Show tells it in z.
func (f *Failure) Show(z *Zone) {
	if l := f.last.Load(); l != nil {
		z.Failure, z.Failing = l.text, l.since
	}
}
