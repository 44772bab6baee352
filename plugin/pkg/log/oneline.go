package log

import (
	"strings"
	"unicode"
)

// OneLine is the text of err as InOneLine has it.
func OneLine(err error) string { return InOneLine(err.Error()) }

// InOneLine is text in a single line, in which those that errors.Join has put together stand behind each other. Control
// characters, which may come from a peer and do something on a terminal, become spaces. A line of the log that goes on
// in the next one has no level there, and who collects lines takes it for two.
func InOneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' { // records as text have tabs
			return ' '
		}
		return r
	}, strings.ReplaceAll(text, "\n", "; "))
}
