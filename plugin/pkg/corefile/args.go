package corefile

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/coredns/caddy"
)

// Args says what may stand on a directive's own line, behind its name.
type Args[T any] struct {
	Syntax   string // as the README writes it, e.g. "[TTL] [ZONES...]"
	Min, Max int    // how many words; Max -1 means any number
	Set      func(s *T, l *Line) error
}

// withUsage adds how the line is written to an error about it that does not tell what is allowed.
func (l *Line) withUsage(err error) error {
	if err == nil || l.syntax == "" || hasPlace(err) {
		return err
	}
	text := err.Error()
	for _, told := range []string{"allowed", "usage:", "must ", "did you mean", "expect", "supports only", "needs"} {
		if strings.Contains(strings.ReplaceAll(text, "unexpected", ""), told) {
			return err
		}
	}
	meant := ""
	if m := noUnit.FindStringSubmatch(text); m != nil {
		meant = fmt.Sprintf(": did you mean '%ss'?", m[1])
	}
	return fmt.Errorf("%w%s (usage: %s)", err, meant, join(l.name, l.syntax))
}

// noUnit is what Go says of a length of time without a unit.
var noUnit = regexp.MustCompile(`missing unit in duration "(\d+)"`)

// Line is the words behind a directive's or an option's name.
type Line struct {
	Args []string

	c      *caddy.Controller
	name   string
	syntax string
}

// Controller is where the line was read from, for what needs the server block's
// keys or reads on by itself.
func (l *Line) Controller() *caddy.Controller { return l.c }

// Name is the directive's or option's name as it was written.
func (l *Line) Name() string { return l.name }

// Arg is word i, "" if there are not so many.
func (l *Line) Arg(i int) string {
	if i < len(l.Args) {
		return l.Args[i]
	}
	return ""
}

// CountErr is the error of a line with too few or too many words.
func (l *Line) CountErr() error {
	return position(l.c, fmt.Errorf("%w (usage: %s)", l.c.ArgErr(), join(l.name, l.syntax)))
}

// Errf is an error with file and line.
func (l *Line) Errf(format string, args ...any) error {
	return position(l.c, fmt.Errorf(format, args...))
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + " " + b
}
