package coremain

import (
	"bytes"
	"io"
	"unicode"
)

// printable is a writer for people. What a command tells has words of clients and upstreams in it, such as the text of
// an extended error, and a terminal obeys control characters: they come as dots, but for ends of lines and tabs.
type printable struct{ io.Writer }

func (p printable) Write(b []byte) (int, error) {
	plain := bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '.'
		}
		return r
	}, b)
	if _, err := p.Writer.Write(plain); err != nil {
		return 0, err
	}
	return len(b), nil
}
