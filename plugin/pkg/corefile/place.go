package corefile

import (
	"fmt"
	"sync/atomic"

	"github.com/coredns/caddy"
)

// place is where the Corefile is being set up; nil if it is not. The goroutine that sets a configuration up writes it.
var place atomic.Pointer[string]

// Place is the file and line, "Corefile:4", of the directive that is being set up, or of the line of its block that
// is being read; "" if none is. Who looks at what setup functions log tells by it what a line is about.
func Place() string {
	if p := place.Load(); p != nil {
		return *p
	}
	return ""
}

// Placed is setup with Place known while it runs.
func Placed(setup caddy.SetupFunc) caddy.SetupFunc {
	return func(c *caddy.Controller) error {
		begin := c.Dispenser // a copy, which reads on by itself
		begin.Next()
		defer place.Store(nil)
		SetPlace(placeOf(begin.File(), begin.Line()))
		return setup(c)
	}
}

// Place is the line's place.
func (l *Line) Place() string { return placeOf(l.c.File(), l.c.Line()) }

// SetPlace says that what follows is about the directive at p. It is for setup functions that do something for each
// of several directives when all have been read.
func SetPlace(p string) { place.Store(&p) }

func placeOf(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
