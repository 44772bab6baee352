package zonefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// generator makes the records of a $GENERATE: $GENERATE range owner [TTL] [class] type RDATA, where
// each $ stands for the number, ${offset,width,base} for the number plus offset in a form, and \$ for a $.
// BIND has RDATA of several words in quotes.
type generator struct {
	before         []byte // the owner before, which is that of a record behind $GENERATE that names none
	templates      []word
	cur, end, step int64
	buf            []byte
	words          []word
}

// maxGenerated bounds the records of one $GENERATE.
const maxGenerated = 65536

// newGenerator reads the words behind $GENERATE. It makes no record yet, but an error in the range is told at once.
func newGenerator(_ *source, args []word) (*generator, error) {
	if len(args) < 4 {
		return nil, errors.New("$GENERATE needs a range, an owner, a type and data")
	}
	g := &generator{step: 1}
	text, step, hasStep := strings.Cut(string(args[0].text), "/")
	from, to, ok := strings.Cut(text, "-")
	var errs [3]error
	g.cur, errs[0] = strconv.ParseInt(from, 10, 32) // so that a step does not overflow it
	g.end, errs[1] = strconv.ParseInt(to, 10, 32)
	if hasStep {
		g.step, errs[2] = strconv.ParseInt(step, 10, 32)
	}
	if !ok || errors.Join(errs[:]...) != nil || g.cur < 0 || g.end < g.cur || g.step < 1 || (g.end-g.cur)/g.step >= maxGenerated {
		return nil, fmt.Errorf("bad range %q of $GENERATE: must be START-STOP or START-STOP/STEP, of at most %d numbers", args[0].text, maxGenerated)
	}
	for _, a := range args[1:] {
		// A copy: the words lie in the lexer's buffer, which the next entry is read into.
		g.templates = append(g.templates, word{bytes.Clone(a.text), a.quoted})
	}
	return g, g.unquote()
}

// unquote makes words of RDATA that is in quotes as a whole, unless its type may be one string.
func (g *generator) unquote() error {
	n := len(g.templates) - 1
	data := g.templates[n]
	typ, ok := parseType(g.templates[n-1].text)
	if !data.quoted || !ok || isOneString(typ) {
		return nil
	}
	var l lexer
	defer l.end()
	l.reset(bytes.NewReader(append(bytes.Clone(data.text), '\n')))
	words, _, err := l.entry()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	g.templates = g.templates[:n]
	for _, w := range words {
		g.templates = append(g.templates, word{bytes.Clone(w.text), w.quoted})
	}
	return nil
}

// isOneString reports whether a type's RDATA may be no more than a string.
func isOneString(typ uint16) bool {
	switch typ {
	case dns.TypeTXT, dns.TypeSPF, dns.TypeAVC, dns.TypeNINFO, dns.TypeHINFO, dns.TypeX25, dns.TypeISDN, dns.TypeUINFO, dns.TypeRESINFO:
		return true
	}
	return false
}

// next is the words of the next record, io.EOF after the last.
func (g *generator) next() ([]word, error) {
	if g.cur > g.end {
		return nil, io.EOF
	}
	g.buf, g.words = g.buf[:0], g.words[:0]
	// The words are cut out of buf when it has its final place: it may move while it grows.
	var ends []int
	for _, t := range g.templates {
		var err error
		if g.buf, err = appendTemplate(g.buf, t.text, g.cur); err != nil {
			return nil, err
		}
		ends = append(ends, len(g.buf))
	}
	from := 0
	for i, t := range g.templates {
		g.words = append(g.words, word{g.buf[from:ends[i]], t.quoted})
		from = ends[i]
	}
	g.cur += g.step
	return g.words, nil
}

// appendTemplate appends text with what stands for the number n filled in.
func appendTemplate(b, text []byte, n int64) ([]byte, error) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			// Other escapes stay as they are: they are read with the record.
			if text[i] != '$' {
				b = append(b, c)
			}
			b = append(b, text[i])
		case c != '$':
			b = append(b, c)
		case i+1 < len(text) && text[i+1] == '$':
			i++
			b = append(b, '$')
		case i+1 < len(text) && text[i+1] == '{':
			end := bytes.IndexByte(text[i:], '}')
			if end < 0 {
				return b, errors.New("bad modifier in $GENERATE: no closing brace")
			}
			var err error
			if b, err = appendModified(b, string(text[i+2:i+end]), n); err != nil {
				return b, err
			}
			i += end
		default:
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return b, nil
}

// appendModified appends n in the form offset[,width[,base]]; base is d, o, x or X.
func appendModified(b []byte, modifier string, n int64) ([]byte, error) {
	offset, rest, _ := strings.Cut(modifier, ",")
	widthText, base, hasBase := strings.Cut(rest, ",")
	off, err := strconv.ParseInt(offset, 10, 64)
	width := uint64(0)
	if err == nil && widthText != "" {
		width, err = strconv.ParseUint(widthText, 10, 8)
	}
	if !hasBase || base == "" {
		base = "d"
	}
	if err != nil || len(base) != 1 || !strings.Contains("doxX", base) {
		return b, fmt.Errorf("bad modifier {%s} in $GENERATE: must be {offset,width,base} with base d, o, x or X", modifier)
	}
	// An offset may be negative; a number may not, as its sign would get into the name.
	if n += off; n < 0 {
		return b, fmt.Errorf("bad offset in $GENERATE: %d is negative", n)
	}
	return fmt.Appendf(b, fmt.Sprintf("%%0%d%s", width, base), n), nil
}
