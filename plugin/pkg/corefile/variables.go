package corefile

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A word may name environment variables, and so may their values. The parser puts values in place until there is no
// name any more: first of {%NAME%}, then of {$NAME}. If a value leads back to its own name, that never ends.

var envReference = regexp.MustCompile(`\{\$[^}]+\}|\{%[^%]+%\}`)

// These bound what values may make of a word.
const (
	maxValues   = 1000
	maxExpanded = 1 << 20 // octets that they may add
)

// expandEnv puts the environment in place of {$NAME} and {%NAME%}, as the parser does. It reports false, and returns s,
// if that does not end.
func expandEnv(s string) (string, bool) {
	text, ends := putValues(s, "{%", "%}")
	if ends {
		text, ends = putValues(text, "{$", "}")
	}
	if !ends {
		return s, false
	}
	return text, true
}

// putValues puts values in place of the names that stand between begin and end.
func putValues(s, begin, end string) (text string, ends bool) {
	most := len(s) + maxExpanded
	for range maxValues {
		at := strings.Index(s, begin)
		if at < 0 {
			return s, true
		}
		n := strings.Index(s[at:], end)
		if n <= len(begin) { // no name, or no end: it stands for itself, and so does the rest
			return s, true
		}
		ref := s[at : at+n+len(end)]
		s = strings.ReplaceAll(s, ref, os.Getenv(s[at+len(begin):at+n]))
		if len(s) > most {
			break
		}
	}
	return s, false
}

// CheckVariables is an error if the value of an environment variable leads back to its name: the parser would not come
// to an end.
func (o *Outline) CheckVariables() error {
	for _, w := range o.Words {
		if _, ends := expandEnv(w.Raw); ends {
			continue
		}
		var values []string
		for _, ref := range envReference.FindAllString(w.Raw, -1) {
			values = append(values, fmt.Sprintf("%s is '%.100s'", ref, os.Getenv(strings.Trim(ref, "{}$%"))))
		}
		return ErrorAt(w, "the values of environment variables lead back to their names: %s: give them values without them", strings.Join(values, ", "))
	}
	return nil
}

// unset is the environment variables that a text names and that are not set.
func unset(raw string) (names []string) {
	for _, ref := range envReference.FindAllString(raw, -1) {
		name := strings.Trim(ref, "{}$%")
		if _, ok := os.LookupEnv(name); !ok {
			names = append(names, fmt.Sprintf("%s (the environment variable %s is not set)", ref, name))
		}
	}
	return names
}
