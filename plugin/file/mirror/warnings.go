package mirror

import (
	"fmt"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// Warn tells of a record that cannot be served.
type Warn func(format string, args ...any)

// warnings are those of one hosted zone. What is odd there mostly stays so: it is told of when it is met first, and not
// at each reading. Only the goroutine that reads uses it.
type warnings struct {
	log  log.P
	told map[string]bool
	met  map[string]bool // at this reading
}

func newWarnings(l log.P) *warnings {
	return &warnings{log: l, told: map[string]bool{}, met: map[string]bool{}}
}

// warn is a Warn.
func (w *warnings) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.met[text] = true
	if !w.told[text] {
		w.told[text] = true
		w.log.Warning(text)
	}
}

// end ends a reading: what was not met at one of the whole zone is told of again when it comes back.
func (w *warnings) end(whole bool) {
	if whole {
		w.told = w.met
	}
	w.met = map[string]bool{}
}
