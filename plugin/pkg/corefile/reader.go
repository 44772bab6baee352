package corefile

import (
	"fmt"
	"strings"

	"github.com/coredns/caddy"
)

// reader reads a directive whose settings are of any type. Generic code stands in the program once for each type, and
// there are as many types as plugins, which came to 0.9 MB: so a Directive only says how its settings are reached.
type reader struct {
	name           string
	args           row // the directive's own line
	options        []*row
	once           bool
	unknownText    string
	unlisted       func(s any, l *Line) (bool, error) // nil if there is none
	unlistedSyntax string
	check          func(s any) error // nil if there is none
}

// row is a line of the Corefile: that of the directive, or that of an option. s is always a pointer to the settings.
type row struct {
	Name   string // as it stands in the Corefile
	Syntax string // its arguments as the README writes them, "" if none
	Help   string // one line

	min, max int
	set      func(s any, l *Line) error
	raw      func(s any, c *caddy.Controller) error
	once     bool
	hidden   bool
}

// reach has r call what knows the type of the settings, to which P is a pointer. Code for pointers stands in the
// program once, whatever they point to, unless it is inlined.
//
//go:noinline
func reach[P any](r *reader, set func(P, *Line) error, unlisted func(P, *Line) (bool, error), check func(P) error) {
	if set != nil {
		r.args.set = func(s any, l *Line) error { return set(s.(P), l) }
	}
	if unlisted != nil {
		r.unlisted = func(s any, l *Line) (bool, error) { return unlisted(s.(P), l) }
	}
	if check != nil {
		r.check = func(s any) error { return check(s.(P)) }
	}
}

// each reads all occurrences in the server block, each into what next returns.
func (r *reader) each(c *caddy.Controller, next func() any) error {
	first := ""
	for n := 0; c.Next(); n++ {
		at := placeOf(c.File(), c.Line())
		switch {
		case n > 0 && c.Val() == "{":
			return r.wrap(c.Errf("the block of '%s' begins on the line after it: '{' stands on the line of '%s', at %s", r.name, r.name, first))
		case r.once && n > 0:
			return r.wrap(&positioned{at + " - Error during parsing: ", fmt.Errorf("%w: '%s' stands at %s already", ErrOnce, r.name, first)})
		case n == 0:
			first = at
		}
		if err := r.one(c, next()); err != nil {
			return r.wrap(err)
		}
	}
	return nil
}

// wrap puts the plugin's name before an error, as all errors of setup have it.
func (r *reader) wrap(err error) error { return fmt.Errorf("plugin/%s: %w", r.name, err) }

// one reads one occurrence; the controller stands on the directive's name.
func (r *reader) one(c *caddy.Controller, s any) error {
	line := Line{c: c, name: r.name, syntax: r.args.Syntax, Args: c.RemainingArgs()}
	at := line.Place()
	SetPlace(at)
	if err := r.args.store(s, &line); err != nil {
		return err
	}
	if r.bare() && c.NextArg() {
		return r.noBlock(c)
	}
	seen := map[string]bool{}
	for c.NextBlock() {
		name := c.Val()
		o := r.find(name)
		if o == nil {
			if err := r.other(s, c, name); err != nil {
				return err
			}
			continue
		}
		if o.once && seen[o.Name] {
			return c.Errf("%s can only be specified once", o.Name)
		}
		seen[o.Name] = true
		if err := o.read(s, c); err != nil {
			return err
		}
		if c.NextArg() { // what an option leaves on its line
			if c.Val() == "{" {
				return r.unknown(c, "{")
			}
			return c.ArgErr()
		}
	}
	SetPlace(at) // what comes when all is read is about the directive as a whole
	if r.check == nil {
		return nil
	}
	return position(c, r.check(s))
}

// bare reports whether the directive is its name and nothing else.
func (r *reader) bare() bool {
	return len(r.options) == 0 && r.unlisted == nil && r.args.max == 0
}

// noBlock is the error of a block, at whose brace the controller stands, that a bare directive has.
func (r *reader) noBlock(c *caddy.Controller) error {
	err := c.Err("Unexpected token '{', expecting argument: this directive takes no options")
	if c.Next() && c.Val() != "}" {
		err = r.unknown(c, c.Val())
	}
	return err
}

// other reads a line that begins with no option.
func (r *reader) other(s any, c *caddy.Controller, name string) error {
	if r.unlisted == nil || name == "{" {
		return r.unknown(c, name)
	}
	line := Line{c: c, name: name, Args: c.RemainingArgs()}
	SetPlace(line.Place())
	ok, err := r.unlisted(s, &line)
	if err == nil && !ok {
		return r.unknown(c, name)
	}
	return position(c, err)
}

// unknown is the error for an option that is not in the table: what is allowed, and what may have been meant.
func (r *reader) unknown(c *caddy.Controller, name string) error {
	text := r.unknownText
	if text == "" {
		text = "unknown property '%s'"
	}
	text = fmt.Sprintf(text, name)
	names := r.names()
	near := nearest(name, names)
	switch {
	case len(r.options) == 0:
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

// find is the row of an option, nil if there is none.
func (r *reader) find(name string) *row {
	for _, o := range r.options {
		if o.Name == name {
			return o
		}
	}
	return nil
}

func (r *reader) names() (names []string) {
	for _, o := range r.options {
		if !o.hidden {
			names = append(names, o.Name)
		}
	}
	return names
}

// read reads one line of the block by its row. The controller stands on the option's name.
func (o *row) read(s any, c *caddy.Controller) error {
	SetPlace(placeOf(c.File(), c.Line()))
	if o.raw != nil {
		return position(c, o.raw(s, c))
	}
	return o.store(s, &Line{c: c, name: o.Name, syntax: o.Syntax, Args: c.RemainingArgs()})
}

// store takes over the words of a line.
func (o *row) store(s any, l *Line) error {
	if n := len(l.Args); n < o.min || o.max >= 0 && n > o.max {
		return l.CountErr()
	}
	if o.set == nil {
		return nil
	}
	return position(l.c, l.withUsage(o.set(s, l)))
}

// fold reads a line by the row whose name it has in other letters, upper case for lower.
func fold(rows []*row, s any, l *Line) (bool, error) {
	for _, o := range rows {
		if o.raw == nil && strings.EqualFold(o.Name, l.name) {
			l.syntax = o.Syntax
			return true, o.store(s, l)
		}
	}
	return false, nil
}
