package corefile

import (
	"errors"
	"fmt"
	"strings"
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

// Placed is setup, the setup function of the plugin name, with Place known while it runs. The errors of what it has
// called when the instance starts tell the plugin and the place of its directive, too.
func Placed(name string, setup caddy.SetupFunc) caddy.SetupFunc {
	return func(c *caddy.Controller) error {
		begin := c.Dispenser // a copy, which reads on by itself
		begin.Next()
		defer place.Store(nil)
		at := placeOf(begin.File(), begin.Line())
		SetPlace(at)
		// Setup adds to these. Tests set plugins up without an instance.
		var starts *[]func() error
		if i, ok := c.Context().(interface{ Instance() *caddy.Instance }); ok {
			starts = &i.Instance().OnStartup
		}
		before := 0
		if starts != nil {
			before = len(*starts)
		}
		if err := setup(c); err != nil {
			if d, ok := c.Context().(interface{ SetupFailed() }); ok {
				d.SetupFailed() // caddy tells nobody of it
			}
			return atPlace(err)
		}
		for i := before; starts != nil && i < len(*starts); i++ {
			start := (*starts)[i]
			(*starts)[i] = func() error { return startError(name, at, start()) }
		}
		return nil
	}
}

// startError is an error of a plugin's start with its name and the place of its directive.
func startError(name, at string, err error) error {
	if err == nil || hasPlace(err) {
		return err
	}
	return &placedError{"plugin/" + name + ": ", at + ": ", err}
}

// atPlace adds the place that is known to an error of setup that tells of none, behind the name of the plugin.
func atPlace(err error) error {
	at := Place()
	if err == nil || at == "" || hasPlace(err) {
		return err
	}
	return &placedError{"", at + " - Error during parsing: ", err}
}

// placedError is an error with its place between the plugin's name and the text.
type placedError struct {
	plugin string // that goes before the place if the error names none
	at     string
	err    error
}

func (p *placedError) Error() string {
	text, before := p.err.Error(), p.plugin
	if strings.HasPrefix(text, "plugin/") {
		if name, rest, ok := strings.Cut(text, ": "); ok {
			before, text = name+": ", rest
		}
	}
	return before + p.at + text
}

func (p *placedError) Unwrap() error { return p.err }

// hasPlace reports whether an error tells its place.
func hasPlace(err error) bool {
	var p *positioned
	text := err.Error()
	return errors.As(err, &p) || strings.Contains(text, " - Error during parsing: ") || strings.Contains(text, " - Syntax error: ")
}

// ErrorAt is an error about a word that stands at w, as the parser words its own.
func ErrorAt(w Word, format string, args ...any) error {
	if w.Line == 0 {
		return fmt.Errorf(format, args...)
	}
	return &positioned{w.Place() + " - Error during parsing: ", fmt.Errorf(format, args...)}
}

// Place is the line's place.
func (l *Line) Place() string { return placeOf(l.c.File(), l.c.Line()) }

// SetPlace says that what follows is about the directive at p. It is for setup functions that do something for each
// of several directives when all have been read.
func SetPlace(p string) { place.Store(&p) }

func placeOf(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }
