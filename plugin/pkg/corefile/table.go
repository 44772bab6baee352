package corefile

import "github.com/coredns/caddy"

// Table is the options of a directive's block, one row each.
type Table[T any] []Option[T]

// Option is one row. Rows are made by Row, Raw and the functions of kinds.go.
type Option[T any] struct{ *row }

// Row is an option with min to max arguments (max -1: any number) that set stores; syntax names
// them, without the option.
func Row[T any](name, syntax, help string, min, max int, set func(s *T, l *Line) error) Option[T] {
	return rowOf[T](name, syntax, help, min, max, func(s any, l *Line) error { return set(s.(*T), l) })
}

func rowOf[T any](name, syntax, help string, min, max int, set func(s any, l *Line) error) Option[T] {
	return Option[T]{&row{Name: name, Syntax: syntax, Help: help, min: min, max: max, set: set}}
}

// Raw is an option with a language of its own, which parse reads by hand. The
// controller stands on the option's name; parse leaves it on the last token it took.
func Raw[T any](name, syntax, help string, parse func(s *T, c *caddy.Controller) error) Option[T] {
	return Option[T]{&row{Name: name, Syntax: syntax, Help: help, raw: func(s any, c *caddy.Controller) error { return parse(s.(*T), c) }}}
}

// Ignored is an option that is accepted with any arguments and does nothing; it
// stands in no README.
func Ignored[T any](name string) Option[T] { return Option[T]{&row{Name: name, max: -1, hidden: true}} }

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

// Fold reads a line whose first word is an option in other letters, upper case for lower. It reports false if there
// is no such option. It is for the Unlisted of directives that take their options in any case.
func Fold[T any](t Table[T], s *T, l *Line) (bool, error) { return fold(rowsOf(t), s, l) }

// rowsOf is the rows of a table. All options are of the same kind to it, so it stands in the program once.
func rowsOf[O ~struct{ *row }](table []O) []*row {
	rows := make([]*row, len(table))
	for i, o := range table {
		rows[i] = struct{ *row }(o).row
	}
	return rows
}
