// Package limit has the kind of option by which the directives of transports bound what clients may take:
// connections, streams, workers. All of them are read alike, with the same words when something is wrong.
//
//	max_connections 200  ──Option──▶ *int in the directive's settings; nil as long as it is not set
//
// Start at Option.
package limit

import (
	"strconv"

	"github.com/coredns/coredns/plugin/pkg/corefile"
)

// Option is an option name with one number, which is stored where field says. It may be set once. least is 0, which
// then stands for no limit, or 1.
func Option[T any](name, help string, least int, field func(*T) **int) corefile.Option[T] {
	kind := "non-negative"
	if least > 0 {
		kind = "positive"
	}
	return corefile.Row(name, "N", help, 1, 1, func(s *T, l *corefile.Line) error {
		to := field(s)
		if *to != nil {
			return l.Errf("%s already defined for this server block", name)
		}
		n, err := strconv.Atoi(l.Args[0])
		if err != nil {
			return l.Errf("invalid %s value '%s': %w: must be a %s integer", name, l.Args[0], err, kind)
		}
		if n < least {
			return l.Errf("%s must be a %s integer: %d", name, kind, n)
		}
		*to = &n
		return nil
	})
}
