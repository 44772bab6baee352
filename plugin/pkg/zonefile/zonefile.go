// Package zonefile reads master files (RFC 1035 §5, $TTL of RFC 2308 §4, $GENERATE as BIND has it).
//
//	file ──lexer──▶ entries: words of one logical line ──Parser──▶ Record in wire form
//
// Records come one by one, so a file of any size is read in little memory. A Parser belongs
// to one goroutine. It knows nothing of zones: records of any owner and class come as they stand.
// Start at New and Parser.Next.
package zonefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Record is one record of a file. Its slices belong to the Parser and hold until the next call of Next.
type Record struct {
	Owner []byte // uncompressed wire form, in the case of the file
	Type  uint16
	Class uint16
	TTL   uint32 // seconds
	RData []byte // uncompressed wire form
}

// Error is an error in a file.
type Error struct {
	File string
	Line int
	Err  error
}

// Error tells the place first, as compilers do; Unwrap is what is wrong there.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// maxIncludes is how deep $INCLUDE may be nested.
const maxIncludes = 7

// Parser reads records from a file and what it includes.
type Parser struct {
	// Open opens a file that is included. It may be set before the first call of Next; os.Open is what it is otherwise.
	Open func(path string) (io.ReadCloser, error)

	files  []*source // the file and its includes, the innermost last
	record Record
	err    error
	gen    *generator

	defaults
}

// source is one file that is being read.
type source struct {
	lexer
	name   string
	origin []byte // what relative names are below
	close  func() error

	before *defaults // of the file that includes this one, where it does
}

// defaults is what a record has that does not tell it itself.
type defaults struct {
	owner  []byte // of the last record
	ttl    uint32 // for records without one
	hasTTL bool
	fixTTL bool // it is from $TTL; TTLs of records do not change it
}

// New is a Parser for r. name is the file's name, for errors and for what it includes;
// origin is the name, in wire form, that relative names are below until $ORIGIN says another.
func New(r io.Reader, name string, origin []byte) *Parser {
	p := &Parser{Open: func(path string) (io.ReadCloser, error) { return os.Open(path) }}
	p.push(r, name, origin, func() error { return nil })
	return p
}

// push reads on in another file; its end leads back to the one before.
func (p *Parser) push(r io.Reader, name string, origin []byte, close func() error) {
	s := &source{name: name, origin: append([]byte(nil), origin...), close: close}
	s.reset(r)
	skipMark(s.r)
	p.files = append(p.files, s)
}

// top is the file that is being read.
func (p *Parser) top() *source { return p.files[len(p.files)-1] }

// Line is where the Parser stands.
func (p *Parser) Line() (file string, line int) { return p.top().name, p.top().line }

// Entry is where the entry of the last record begins.
func (p *Parser) Entry() (file string, line int) { return p.top().name, p.top().entryLine }

// Next is the next record. At the end of the file the error is io.EOF; any other error is an
// *Error, after which there is nothing more to read.
func (p *Parser) Next() (*Record, error) {
	if p.err != nil {
		return nil, p.err
	}
	for {
		ok, err := p.step()
		if err != nil {
			p.fail(err)
			return nil, p.err
		}
		if ok {
			return &p.record, nil
		}
	}
}

// fail ends reading.
func (p *Parser) fail(err error) {
	// The end of the file itself is no error; all else is told with its place, once.
	if !errors.Is(err, io.EOF) || len(p.files) > 1 {
		var e *Error
		if !errors.As(err, &e) {
			err = &Error{p.top().name, p.top().entryLine, err}
		}
	}
	p.err = err
	for _, f := range p.files {
		f.end()
		f.close()
	}
}

// step reads one entry. It reports whether that was a record.
func (p *Parser) step() (bool, error) {
	if p.gen != nil {
		// The records of a $GENERATE come one by one, too.
		words, err := p.gen.next()
		if err == nil {
			return true, p.read(words, false)
		}
		p.owner = append(p.owner[:0], p.gen.before...)
		p.gen = nil
		if !errors.Is(err, io.EOF) {
			return false, err
		}
	}
	s := p.top()
	words, blank, err := s.entry()
	if errors.Is(err, io.EOF) && len(p.files) > 1 {
		s.end()
		s.close()
		p.files = p.files[:len(p.files)-1]
		p.defaults = *s.before
		return false, nil
	}
	if err != nil || len(words) == 0 {
		return false, err
	}
	if first := words[0]; !blank && !first.quoted && len(first.text) > 0 && first.text[0] == '$' {
		return false, p.directive(string(first.text), words[1:])
	}
	return true, p.read(words, blank)
}

// directive does what one of the control entries says (RFC 1035 §5.1). Its name may be written in any case.
func (p *Parser) directive(name string, args []word) error {
	s := p.top()
	switch strings.ToUpper(name) {
	case "$ORIGIN":
		if len(args) != 1 {
			return errors.New("$ORIGIN needs one name")
		}
		origin, err := appendName(nil, args[0].text, s.origin)
		if err != nil {
			return fmt.Errorf("$ORIGIN %s: %w", args[0].text, err)
		}
		s.origin = origin
	case "$TTL":
		if len(args) != 1 {
			return errors.New("$TTL needs one time")
		}
		ttl, ok := parseTTL(args[0].text)
		if !ok {
			return fmt.Errorf("$TTL: %w", badTTL(args[0].text))
		}
		p.ttl, p.hasTTL, p.fixTTL = counted(ttl), true, true
	case "$INCLUDE":
		return p.include(args)
	case "$GENERATE":
		g, err := newGenerator(s, args)
		if err != nil {
			return err
		}
		g.before = slices.Clone(p.owner)
		p.gen = g
	default:
		return fmt.Errorf("unknown directive %s: must be $ORIGIN, $TTL, $INCLUDE or $GENERATE", name)
	}
	return nil
}

// include begins with a file whose path is relative to that of the file that names it, and goes on with the owner and
// the TTL of the record before. Its own ones hold to its end, as its $ORIGIN does: behind it, all is as it was before.
func (p *Parser) include(args []word) error {
	s := p.top()
	if len(args) < 1 || len(args) > 2 {
		return errors.New("$INCLUDE needs a file, and may have an origin")
	}
	// Files that include one another would have no end.
	if len(p.files) > maxIncludes {
		return errors.New("too deeply nested $INCLUDE")
	}
	origin := s.origin
	if len(args) == 2 {
		var err error
		if origin, err = appendName(nil, args[1].text, s.origin); err != nil {
			return fmt.Errorf("$INCLUDE: bad origin name %s: %w", args[1].text, err)
		}
	}
	path := string(args[0].text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.name), path)
	}
	f, err := p.Open(path)
	if err != nil {
		return fmt.Errorf("failed to open %q of $INCLUDE: %w", args[0].text, err)
	}
	p.push(f, path, origin, f.Close)
	before := p.defaults
	before.owner = slices.Clone(p.owner)
	p.top().before = &before
	return nil
}

// appendName appends a name as a file writes it, relative to origin without a final
// dot, in wire form.
func appendName(b, text, origin []byte) ([]byte, error) {
	if len(text) == 1 && text[0] == '@' {
		return append(b, origin...), nil
	}
	start := len(b)
	b, err := wire.AppendName(b, text)
	if err != nil || absolute(text) {
		return b, err
	}
	b = append(b[:len(b)-1], origin...)
	if len(b)-start > wire.MaxName {
		return b[:start], wire.ErrName
	}
	return b, nil
}

// absolute reports whether a name ends in a dot that is none of a label.
func absolute(text []byte) bool {
	if len(text) == 0 || text[len(text)-1] != '.' {
		return len(text) == 0
	}
	escapes := 0
	for i := len(text) - 2; i >= 0 && text[i] == '\\'; i-- {
		escapes++
	}
	return escapes%2 == 0
}
