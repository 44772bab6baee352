package zonefile

import (
	"bufio"
	"io"
)

// byteOrderMark is what some editors put before UTF-8 text. It would be part of the first name.
const byteOrderMark = "\uFEFF"

// Unmarked is r without a byte order mark before its text.
func Unmarked(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	skipMark(b)
	return b
}

func skipMark(r *bufio.Reader) {
	if start, _ := r.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		r.Discard(len(start)) // they are in the buffer
	}
}
