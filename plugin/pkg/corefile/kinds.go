package corefile

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/fall"
)

// The kinds of options that many directives share. Each takes exactly the
// arguments that its syntax shows; what is out of bounds is an error that tells the bounds.

// Flag is an option without arguments.
func Flag[T any](name, help string, set func(*T)) Option[T] {
	return rowOf[T](name, "", help, 0, 0, func(s any, _ *Line) error {
		set(s.(*T))
		return nil
	})
}

// Int is an option with one whole number from min to max.
func Int[T any](name string, min, max int, help string, set func(*T, int)) Option[T] {
	return rowOf[T](name, "N", help, 1, 1, func(s any, l *Line) error {
		n, err := ParseInt(l.Name(), l.Args[0], min, max)
		if err == nil {
			set(s.(*T), n)
		}
		return err
	})
}

// Duration is an option with one duration in Go's form from min to max.
func Duration[T any](name string, min, max time.Duration, help string, set func(*T, time.Duration)) Option[T] {
	return rowOf[T](name, "DURATION", help, 1, 1, func(s any, l *Line) error {
		d, err := ParseDuration(l.Name(), l.Args[0], min, max)
		if err == nil {
			set(s.(*T), d)
		}
		return err
	})
}

// String is an option with one argument of any form, which syntax names in the README and in errors: FILE.
func String[T any](name, syntax, help string, set func(*T, string)) Option[T] {
	return rowOf[T](name, syntax, help, 1, 1, func(s any, l *Line) error {
		set(s.(*T), l.Args[0])
		return nil
	})
}

// Strings is an option with one argument or more, which syntax names: ADDRESS... .
func Strings[T any](name, syntax, help string, set func(*T, []string)) Option[T] {
	return rowOf[T](name, syntax, help, 1, -1, func(s any, l *Line) error {
		set(s.(*T), l.Args)
		return nil
	})
}

// Enum is an option with one of the given words, compared without regard to case.
func Enum[T any](name string, words []string, help string, set func(*T, string)) Option[T] {
	return rowOf[T](name, strings.Join(words, "|"), help, 1, 1, func(s any, l *Line) error {
		word, err := wordOf(l, words)
		if err == nil {
			set(s.(*T), word)
		}
		return err
	})
}

// wordOf is the argument of a line, which is to be one of words.
func wordOf(l *Line, words []string) (string, error) {
	word := strings.ToLower(l.Args[0])
	if !slices.Contains(words, word) {
		return "", l.Errf("%s '%s' is not supported: must be one of %s%s", l.name, l.Args[0], strings.Join(words, ", "), Meant(word, words))
	}
	return word, nil
}

// Fallthrough is the option that lets queries for some zones, or for all, pass on
// to the next plugin when this one has no answer. set gets the arguments as written.
func Fallthrough[T any](set func(*T, []string)) Option[T] {
	return rowOf[T]("fallthrough", "[ZONES...]", "pass queries that have no answer here on to the next plugin", 0, -1, func(s any, l *Line) error {
		for i := range l.Args {
			var f fall.F
			if f.SetZonesFromArgs(l.Args[i : i+1]); len(f.Zones) == 0 {
				return fmt.Errorf("invalid zone %q", l.Args[i])
			}
		}
		set(s.(*T), l.Args)
		return nil
	})
}

// ParseInt reads a whole number within bounds; what names it in errors.
func ParseInt(what, text string, min, max int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: must be a whole number between %d and %d", what, err, min, max)
	}
	if n < min || n > max {
		return 0, fmt.Errorf("%s must be between %d and %d: %d", what, min, max, n)
	}
	return n, nil
}

// units are the letters that may follow a number of octets.
var units = map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

// ParseSize reads a number of octets within bounds, such as 4096, 64K, 2M or 1GB; what names it in errors.
func ParseSize(what, text string, min, max int64) (int64, error) {
	upper := strings.TrimSuffix(strings.ToUpper(text), "B")
	digits := strings.TrimRight(upper, "KMG")
	unit, ok := units[upper[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%s: invalid size %q: must be a number, with K, M or G behind it if it is in KiB, MiB or GiB", what, text)
	}
	if n *= unit; n < min || n > max {
		return 0, fmt.Errorf("%s must be between %d and %d: %d", what, min, max, n)
	}
	return n, nil
}

// ParseDuration reads a duration in Go's form within bounds; what names it in errors.
func ParseDuration(what, text string, min, max time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: must be a duration such as 10s, 5m or 1h30m", what, err)
	}
	if d < min || d > max {
		return 0, fmt.Errorf("%s must be between %s and %s: %s", what, min, max, d)
	}
	return d, nil
}

// ParseSource reads an address, or a network in CIDR notation; an address stands
// for the network that holds nothing else. IPv4 addresses that are written as IPv6
// ones (RFC 4291 §2.5.5.2) are IPv4 addresses, as those of clients are.
func ParseSource(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if a := p.Addr(); err == nil && a.Is4In6() && p.Bits() >= mappedBits {
		return netip.PrefixFrom(a.Unmap(), p.Bits()-mappedBits), nil
	}
	return p, err
}

// mappedBits is what stands before the IPv4 address in such a one.
const mappedBits = 128 - 32
