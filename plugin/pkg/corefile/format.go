package corefile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Formatting changes blanks and empty lines, and nothing else: words are neither moved to other lines nor written in
// another way, for what a line ends means something in a Corefile, and what is quoted need not be. That the result
// means the same is looked at before it is given to anybody.

// indent is what each open brace adds to the begin of a line.
const indent = "    "

// Format is a Corefile with one blank between words, four before each line for each brace that is open, and at most one
// empty line between others. Words stay on their lines, and comments where they are, so it means what it did before.
//
// The error is that it cannot be done: the text is no UTF-8, or the result would mean something else.
func Format(text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	var out []byte
	depth, empty := 0, false
	for _, line := range formatLines(text) {
		if len(line.words) == 0 && line.comment == "" {
			empty = len(out) > 0
			continue
		}
		closes := len(line.words) > 0 && line.words[0] == "}"
		if closes {
			depth = max(0, depth-1)
		}
		if empty && !closes && !bytes.HasSuffix(out, []byte("{\n")) {
			out = append(out, '\n')
		}
		empty = false
		out = append(out, strings.Repeat(indent, depth)...)
		out = append(out, strings.Join(line.words, " ")...)
		if line.comment != "" {
			if len(line.words) > 0 {
				out = append(out, ' ')
			}
			out = append(out, line.comment...)
		}
		out = append(out, '\n')
		for i, w := range line.words {
			switch {
			case w == "{":
				depth++
			case w == "}" && i > 0:
				depth = max(0, depth-1)
			}
		}
	}
	if !sameWords(text, out) {
		return nil, errors.New("it has something that cannot be formatted")
	}
	return out, nil
}

// sameWords reports whether two texts are the same to the parser, but for the number of empty lines.
func sameWords(a, b []byte) bool {
	x, y := &outliner{words: words("", a)}, &outliner{words: words("", b)}
	if len(x.words) != len(y.words) {
		return false
	}
	for i := range x.words {
		if x.words[i].Raw != y.words[i].Raw || x.first(i) != y.first(i) {
			return false
		}
	}
	return true
}

// formatLine is a line as it was written: words with their quotes, and the comment with its #.
type formatLine struct {
	words   []string
	comment string
}

// formatLines takes a text apart as the parser does. A word in quotes may have several lines; what comes after it
// stands on the line of its end.
func formatLines(text []byte) (lines []formatLine) {
	s := strings.TrimPrefix(string(text), "\uFEFF")
	var line formatLine
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			lines = append(lines, line)
			line = formatLine{}
			s = s[size:]
		case unicode.IsSpace(r):
			s = s[size:]
		case r == '#':
			end := strings.IndexByte(s, '\n')
			if end < 0 {
				end = len(s)
			}
			line.comment = strings.TrimRightFunc(s[:end], unicode.IsSpace)
			s = s[end:]
		default:
			n := wordLen(s)
			line.words = append(line.words, strings.ReplaceAll(s[:n], "\r", "")) // which has no meaning, also in a word
			if s[0] == '"' {
				line.words[len(line.words)-1] = s[:n]
			}
			s = s[n:]
		}
	}
	return slices.Concat(lines, []formatLine{line})
}

// wordLen is how many octets the word at the begin of s has.
func wordLen(s string) int {
	if s[0] != '"' {
		n := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) && r != '\r' || r == '#' })
		if n < 0 {
			n = len(s)
		}
		return n
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
