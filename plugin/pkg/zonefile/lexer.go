package zonefile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// word is one word of an entry. Escapes in it are still as they were written.
type word struct {
	text   []byte
	quoted bool
}

// hasQuote reports whether there is a quote within the word.
func (w word) hasQuote() bool {
	if w.quoted || bytes.IndexByte(w.text, '"') < 0 {
		return false
	}
	for i := 0; i < len(w.text); i++ {
		switch w.text[i] {
		case '\\':
			i++
		case '"':
			return true
		}
	}
	return false
}

// maxEntry bounds the octets of one entry, over all its lines.
const maxEntry = 1 << 20

var (
	errQuote  = errors.New("a quote is not closed")
	errParen  = errors.New("unbalanced parentheses")
	errEscape = errors.New(`an escape \DDD is more than \255`)
	errLength = errors.New("an entry is longer than a mebibyte")
)

// lexer takes a file apart into entries: logical lines, which parentheses and quotes may spread over
// several physical ones, without comments.
type lexer struct {
	r         *bufio.Reader
	line      int // physical lines read so far
	entryLine int // the first line of the entry
	buf       []byte
	words     []word
	spans     []span // where the words lie in buf
	open      bool   // a quote is open; its word begins at openAt in buf
	openAt    int
	bad       bool   // an escape is of no octet
	long      []byte // a line that was longer than r's buffer
}

// span is where a word lies in buf, which may move as long as the entry is read.
type span struct {
	from, to int
	quoted   bool
}

// readers are used again: there may be ten thousand files, most of them smaller than such a buffer.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// reset begins with another file.
func (l *lexer) reset(r io.Reader) {
	l.r = readers.Get().(*bufio.Reader)
	l.r.Reset(r)
}

// end gives the buffer away. Nothing more can be read then.
func (l *lexer) end() {
	if l.r != nil {
		l.r.Reset(nil)
		readers.Put(l.r)
		l.r = nil
	}
}

// entry is the words of the next entry, and whether it began with white space, so that the owner
// is that of the record before. Entries without words are left out. At the end the error is io.EOF.
func (l *lexer) entry() (words []word, blank bool, err error) {
	l.buf, l.spans, l.open, l.bad = l.buf[:0], l.spans[:0], false, false
	depth := 0
	for {
		text, err := l.physical()
		if err != nil {
			switch {
			case !errors.Is(err, io.EOF):
			case l.open:
				err = errQuote
			case depth > 0:
				err = errParen
			}
			return nil, false, err
		}
		// The first line with a word counts: those before it, with comments or nothing, are left behind.
		if len(l.spans) == 0 && depth == 0 && !l.open {
			l.entryLine = l.line
			blank = len(text) > 0 && (text[0] == ' ' || text[0] == '\t')
		}
		if depth, err = l.scan(text, depth); err != nil {
			return nil, false, err
		}
		// Checked for each line, as an entry in parentheses or quotes may have any number of them.
		if len(l.buf) > maxEntry {
			return nil, false, errLength
		}
		if depth == 0 && len(l.spans) > 0 && !l.open {
			break
		}
	}
	if l.bad {
		return nil, false, errEscape
	}
	l.words = l.words[:0]
	for _, s := range l.spans {
		l.words = append(l.words, word{l.buf[s.from:s.to], s.quoted})
	}
	return l.words, blank, nil
}

// physical is the next line without its end. It holds until the next call.
func (l *lexer) physical() ([]byte, error) {
	text, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], text...)
		for errors.Is(err, bufio.ErrBufferFull) {
			text, err = l.r.ReadSlice('\n')
			if l.long = append(l.long, text...); len(l.long) > maxEntry {
				return nil, errLength
			}
		}
		text = l.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return nil, err
	}
	l.line++
	for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
		text = text[:len(text)-1]
	}
	return text, nil
}

// scan adds the words of a line; depth is how many parentheses are open.
func (l *lexer) scan(text []byte, depth int) (int, error) {
	i := 0
	if l.open {
		l.buf = append(l.buf, '\n')
		i = l.quoted(text, 0)
	}
	for i < len(text) {
		switch c := text[i]; c {
		case ' ', '\t', '\r':
			i++
		case ';':
			return depth, nil
		case '(':
			depth++
			i++
		case ')':
			if depth--; depth < 0 {
				return 0, errParen
			}
			i++
		case '"':
			l.openAt = len(l.buf)
			i = l.quoted(text, i+1)
		default:
			var err error
			if i, err = l.plain(text, i); err != nil {
				return 0, err
			}
		}
	}
	return depth, nil
}

// quoted reads on at i in the word that begins at openAt, and returns where it ended. It ends at the next quote, which
// may stand on a later line: the ends of lines are part of the word then.
func (l *lexer) quoted(text []byte, i int) int {
	for ; i < len(text) && text[i] != '"'; i++ {
		// An escaped quote is none. The escape itself is undone later, as in a name it has another meaning.
		if text[i] == '\\' && i+1 < len(text) {
			l.bad = l.bad || tooMuch(text[i+1:])
			l.buf = append(l.buf, text[i])
			i++
		}
		l.buf = append(l.buf, text[i])
	}
	if l.open = i == len(text); l.open {
		return i
	}
	l.spans = append(l.spans, span{l.openAt, len(l.buf), true})
	return i + 1
}

// plain adds the word that begins at i, and returns where it ended. A quoted part within
// the word, as in key="a b", belongs to it with its quotes.
func (l *lexer) plain(text []byte, i int) (int, error) {
	from := len(l.buf)
	start := i
	inQuotes := false
loop:
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i+1 < len(text) {
				i++
				l.bad = l.bad || tooMuch(text[i:])
			}
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case c == ' ' || c == '\t' || c == '\r' || c == ';' || c == '(' || c == ')':
			break loop
		}
	}
	if inQuotes {
		return 0, errQuote
	}
	l.buf = append(l.buf, text[start:i]...)
	l.spans = append(l.spans, span{from, len(l.buf), false})
	return i, nil
}

// tooMuch reports whether what stands behind a backslash is three digits for no octet (RFC 1035 §5.1).
func tooMuch(text []byte) bool {
	return len(text) >= 3 && digit(text[0]) && digit(text[1]) && digit(text[2]) && string(text[:3]) > "255"
}
