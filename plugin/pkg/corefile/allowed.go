package corefile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Errors about words of which there are but a few end alike, in all plugins:
//
//	unknown policy: round-robin: did you mean 'round_robin'? (allowed: round_robin, weighted)
//	invalid query class INN: did you mean 'IN'? (allowed: ANY, CH, CS, HS, IN, NONE)

// Choice is the end of an error about a word that is not one of those allowed: which of them may have been meant, and
// all of them.
//
//	return fmt.Errorf("unknown policy '%s'%s", word, corefile.Choice(word, names))
func Choice(given string, allowed []string) string {
	if near := Nearest(given, allowed); near != "" {
		return fmt.Sprintf(": did you mean '%s'? (allowed: %s)", near, strings.Join(allowed, ", "))
	}
	return fmt.Sprintf(" (allowed: %s)", strings.Join(allowed, ", "))
}

// Meant is the part of an error that says which of the words that are allowed may have been meant: nothing if none is
// near.
func Meant(given string, allowed []string) string {
	if near := Nearest(given, allowed); near != "" {
		return fmt.Sprintf(": did you mean '%s'?", near)
	}
	return ""
}

// TypeChoice is Choice for a type of records.
func TypeChoice(given string) string { return choiceOf(given, dns.StringToType) }

// ClassChoice is Choice for a class.
func ClassChoice(given string) string { return choiceOf(given, dns.StringToClass) }

// RcodeChoice is Choice for a return code.
func RcodeChoice(given string) string { return choiceOf(given, dns.StringToRcode) }

func choiceOf[T any](given string, known map[string]T) string {
	names := slices.Sorted(maps.Keys(known))
	names = slices.DeleteFunc(names, func(s string) bool { return s == "None" || s == "Reserved" })
	if _, ok := known[strings.ToUpper(given)]; ok {
		return fmt.Sprintf(": did you mean '%s'? (allowed: %s)", strings.ToUpper(given), strings.Join(names, ", "))
	}
	return Choice(given, names)
}

// Nearest is the one of words that differs from given by the fewest typing errors, in any letter case, if those are
// few enough to be a slip; else "".
func Nearest(given string, words []string) string {
	for _, w := range words {
		if strings.EqualFold(w, given) && w != given {
			return w
		}
	}
	return nearest(given, words)
}
