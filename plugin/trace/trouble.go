package trace

import (
	"fmt"
	"time"
)

// troubleTime is how often it is told that batches fail: at some thousand queries a second there are hundreds of these.
const troubleTime = 10 * time.Second

// trouble is what failed since it was told last. Its zero value is none.
type trouble struct {
	told time.Time
	n    int
	last error
}

// failed notes an error, and returns the line that is to be logged now, "" if none is. So does due, without one.
func (t *trouble) failed(err error, now time.Time) (line string) {
	t.n, t.last = t.n+1, err
	return t.due(now)
}

func (t *trouble) due(now time.Time) string {
	if now.Sub(t.told) < troubleTime {
		return ""
	}
	return t.line(now)
}

// line is what is to be told in any case.
func (t *trouble) line(now time.Time) (line string) {
	switch t.n {
	case 0:
		return ""
	case 1:
		line = t.last.Error()
	default:
		line = fmt.Sprintf("%v (%d times in the last %s)", t.last, t.n, now.Sub(t.told).Round(time.Second))
	}
	*t = trouble{told: now}
	return line
}
