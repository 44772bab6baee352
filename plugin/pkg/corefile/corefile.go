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
	"fmt"
	"strings"

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
	return d.each(c, func() *T { return settings })
}

// ParseEach reads each occurrence into a value of its own, which begins as defaults.
func (d *Directive[T]) ParseEach(c *caddy.Controller, defaults T) ([]T, error) {
	var all []*T
	err := d.each(c, func() *T {
		s := defaults
		all = append(all, &s)
		return &s
	})
	if err != nil {
		return nil, err
	}
	out := make([]T, len(all))
	for i, s := range all {
		out[i] = *s
	}
	return out, nil
}

// each reads all occurrences in the server block, each into what next returns.
func (d *Directive[T]) each(c *caddy.Controller, next func() *T) error {
	first := ""
	for n := 0; c.Next(); n++ {
		at := placeOf(c.File(), c.Line())
		switch {
		case n > 0 && c.Val() == "{":
			return d.wrap(c.Errf("the block of '%s' begins on the line after it: '{' stands on the line of '%s', at %s", d.Name, d.Name, first))
		case d.Once && n > 0:
			return d.wrap(&positioned{at + " - Error during parsing: ", fmt.Errorf("%w: '%s' stands at %s already", ErrOnce, d.Name, first)})
		case n == 0:
			first = at
		}
		if err := d.one(c, next()); err != nil {
			return d.wrap(err)
		}
	}
	return nil
}

// wrap puts the plugin's name before an error, as all errors of setup have it.
func (d *Directive[T]) wrap(err error) error { return fmt.Errorf("plugin/%s: %w", d.Name, err) }

// one reads one occurrence; the controller stands on the directive's name.
func (d *Directive[T]) one(c *caddy.Controller, s *T) error {
	line := Line{c: c, name: d.Name, syntax: d.Args.Syntax, Args: c.RemainingArgs()}
	at := line.Place()
	SetPlace(at)
	if err := d.Args.read(s, &line); err != nil {
		return err
	}
	if d.bare() && c.NextArg() {
		return d.noBlock(c)
	}
	seen := map[string]bool{}
	for c.NextBlock() {
		name := c.Val()
		row := d.Options.find(name)
		if row == nil {
			if err := d.unlisted(s, c, name); err != nil {
				return err
			}
			continue
		}
		if row.once && seen[row.Name] {
			return c.Errf("%s can only be specified once", row.Name)
		}
		seen[row.Name] = true
		if err := row.read(s, c); err != nil {
			return err
		}
		if c.NextArg() { // what an option leaves on its line
			if c.Val() == "{" {
				return d.unknown(c, "{")
			}
			return c.ArgErr()
		}
	}
	SetPlace(at) // what comes when all is read is about the directive as a whole
	if d.Check == nil {
		return nil
	}
	return position(c, d.Check(s))
}

// bare reports whether the directive is its name and nothing else.
func (d *Directive[T]) bare() bool {
	return len(d.Options) == 0 && d.Unlisted == nil && d.Args.Max == 0
}

// noBlock is the error of a block, at whose brace the controller stands, that a bare directive has.
func (d *Directive[T]) noBlock(c *caddy.Controller) error {
	err := c.Err("Unexpected token '{', expecting argument: this directive takes no options")
	if c.Next() && c.Val() != "}" {
		err = d.unknown(c, c.Val())
	}
	return err
}

// unlisted reads a line that begins with no option.
func (d *Directive[T]) unlisted(s *T, c *caddy.Controller, name string) error {
	if d.Unlisted == nil || name == "{" {
		return d.unknown(c, name)
	}
	line := Line{c: c, name: name, Args: c.RemainingArgs()}
	SetPlace(line.Place())
	ok, err := d.Unlisted(s, &line)
	if err == nil && !ok {
		return d.unknown(c, name)
	}
	return position(c, err)
}

// unknown is the error for an option that is not in the table: what is allowed, and what may have been meant.
func (d *Directive[T]) unknown(c *caddy.Controller, name string) error {
	text := d.Unknown
	if text == "" {
		text = "unknown property '%s'"
	}
	text = fmt.Sprintf(text, name)
	names := d.Options.names()
	near := nearest(name, names)
	switch {
	case len(d.Options) == 0:
		text += ": this directive takes no options"
	case near != "":
		text += fmt.Sprintf(": did you mean '%s'? (allowed: %s)", near, strings.Join(names, ", "))
	default:
		text += fmt.Sprintf(" (allowed: %s)", strings.Join(names, ", "))
	}
	if strings.HasPrefix(text, "Syntax error: ") {
		return fmt.Errorf("%s:%d - %s", c.File(), c.Line(), text)
	}
	return c.Errf("%s", text)
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
