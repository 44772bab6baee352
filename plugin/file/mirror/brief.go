package mirror

import (
	"strings"
	"unicode/utf8"
)

// maxText is how many octets of an error's text are told.
const maxText = 500

// brief is an error whose text is one line of a log. What a provider says, or a proxy before it, may be a whole page.
type brief struct{ error }

// Brief is err with its text in one line, which is cut if it is long.
func Brief(err error) error { return brief{err} }

// Error is the text.
func (b brief) Error() string {
	lines := strings.FieldsFunc(b.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	told := lines[:0]
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			told = append(told, l)
		}
	}
	text := strings.Join(told, "; ")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// Unwrap is err.
func (b brief) Unwrap() error { return b.error }
