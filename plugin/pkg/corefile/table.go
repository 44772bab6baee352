package corefile

import (
	"strings"

	"github.com/coredns/caddy"
)

// Table is the options of a directive's block, one row each.
type Table[T any] []Option[T]

// Option is one row. Rows are made by Row, Raw and the functions of kinds.go.
type Option[T any] struct {
	Name   string // as it stands in the Corefile
	Syntax string // its arguments as the README writes them, "" if none
	Help   string // one line

	min, max int
	set      func(s *T, l *Line) error
	raw      func(s *T, c *caddy.Controller) error
	once     bool
	hidden   bool
}

// Row is an option with min to max arguments (max -1: any number) that set stores.
func Row[T any](name, syntax, help string, min, max int, set func(s *T, l *Line) error) Option[T] {
	return Option[T]{Name: name, Syntax: syntax, Help: help, min: min, max: max, set: set}
}

// Raw is an option with a language of its own, which parse reads by hand. The
// controller stands on the option's name; parse leaves it on the last token it took.
func Raw[T any](name, syntax, help string, parse func(s *T, c *caddy.Controller) error) Option[T] {
	return Option[T]{Name: name, Syntax: syntax, Help: help, raw: parse}
}

// Ignored is an option that is accepted with any arguments and does nothing; it
// stands in no README.
func Ignored[T any](name string) Option[T] {
	return Option[T]{Name: name, max: -1, set: func(*T, *Line) error { return nil }, hidden: true}
}

// Once makes a second occurrence of the option an error.
func (o Option[T]) Once() Option[T] {
	o.once = true
	return o
}

// Hidden leaves the option out of syntax and suggestions.
func (o Option[T]) Hidden() Option[T] {
	o.hidden = true
	return o
}

// find is the row of an option, nil if there is none.
func (t Table[T]) find(name string) *Option[T] {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Fold reads a line whose first word is an option in other letters, upper case for lower. It reports false if there
// is no such option. It is for the Unlisted of directives that take their options in any case.
func (t Table[T]) Fold(s *T, l *Line) (bool, error) {
	for i := range t {
		o := &t[i]
		if o.raw == nil && strings.EqualFold(o.Name, l.name) {
			a := Args[T]{Syntax: o.Syntax, Min: o.min, Max: o.max, Set: o.set}
			l.syntax = o.Syntax
			return true, a.read(s, l)
		}
	}
	return false, nil
}

func (t Table[T]) names() (names []string) {
	for i := range t {
		if !t[i].hidden {
			names = append(names, t[i].Name)
		}
	}
	return names
}

// read reads one line of the block by its row. The controller stands on the option's name.
func (o *Option[T]) read(s *T, c *caddy.Controller) error {
	SetPlace(placeOf(c.File(), c.Line()))
	if o.raw != nil {
		return position(c, o.raw(s, c))
	}
	a := Args[T]{Syntax: o.Syntax, Min: o.min, Max: o.max, Set: o.set}
	return a.read(s, &Line{c: c, name: o.Name, syntax: o.Syntax, Args: c.RemainingArgs()})
}
