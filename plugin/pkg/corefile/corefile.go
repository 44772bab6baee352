// Package corefile reads the directives of a Corefile by tables.
//
//	Corefile ──caddy──▶ tokens ──Directive.Parse──▶ settings (a plain struct of the plugin)
//	                                  ▲
//	                    Args, Table: the only list of what is allowed
//
// A plugin declares its directive once: what may stand on the line, and one row for
// each option of the block (name, arguments, help, where the value goes). From that
// come parsing, the checks and their error texts, the syntax in the README (a test
// compares), what -validate prints, and the man pages. Parsing builds a value and
// touches nothing else; sockets, files that change and goroutines begin in OnStartup.
//
// Each error says file, line, plugin, what was given and what is allowed:
//
//	plugin/cache: Corefile:4 - Error during parsing: unknown property 'sucess': did you mean 'success'? (allowed: ...)
//
// Directive values are made in package variables and never change; they may be
// used by any number of goroutines. Start at Directive.
package corefile

import (
	"errors"

	"github.com/coredns/caddy"
)

// UnknownAsCount is the wording of directives that take an unknown option for an argument too many.
const UnknownAsCount = "Wrong argument count or unexpected line ending after '%s'"

// ErrOnce is the error of a directive that stands twice in a server block and may not.
var ErrOnce = errors.New("this plugin can only be used once per Server Block")

// Directive describes a directive whose settings are a T.
type Directive[T any] struct {
	Name    string   // as it stands in the Corefile
	Args    Args[T]  // what may stand on the directive's own line
	Options Table[T] // what may stand in its block; without rows it takes no block
	Once    bool     // a second occurrence in a server block is an error

	// Unknown is the wording for an option that is not in the table, with one %s for
	// its name; "unknown property '%s'" if empty. One that begins with "Syntax error: " is told as such.
	Unknown string
	// Unlisted, if set, gets the lines whose first word is no option. It reports false if that is
	// an unknown option all the same.
	Unlisted func(s *T, l *Line) (bool, error)
	// UnlistedSyntax is these lines as the README writes them.
	UnlistedSyntax string
	// Check, if set, looks at the settings of one occurrence when all of it was read.
	Check func(*T) error
}

// Parse reads all occurrences of the directive in the server block into one
// value, which the caller fills with the defaults first.
func (d *Directive[T]) Parse(c *caddy.Controller, settings *T) error {
	return readerOf(d).each(c, func() any { return settings })
}

// ParseEach reads each occurrence into a value of its own, which begins as defaults.
func (d *Directive[T]) ParseEach(c *caddy.Controller, defaults T) (all []T, err error) {
	var read []*T
	err = readerOf(d).each(c, func() any {
		s := defaults
		read = append(read, &s)
		return &s
	})
	if err != nil {
		return nil, err
	}
	for _, s := range read {
		all = append(all, *s)
	}
	return all, nil
}

// readerOf is d without the type of its settings.
func readerOf[T any](d *Directive[T]) *reader {
	r := &reader{
		name: d.Name, args: row{Syntax: d.Args.Syntax, min: d.Args.Min, max: d.Args.Max}, options: rowsOf(d.Options),
		once: d.Once, unknownText: d.Unknown, unlistedSyntax: d.UnlistedSyntax,
	}
	reach(r, d.Args.Set, d.Unlisted, d.Check)
	return r
}

// position adds file and line to an error that has none.
func position(c *caddy.Controller, err error) error {
	if err == nil {
		return nil
	}
	if hasPlace(err) {
		return err
	}
	return &positioned{placeOf(c.File(), c.Line()) + " - Error during parsing: ", err}
}

// positioned is an error with its place before it.
type positioned struct {
	place string
	err   error
}

func (p *positioned) Error() string { return p.place + p.err.Error() }
func (p *positioned) Unwrap() error { return p.err }
