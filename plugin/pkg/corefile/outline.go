package corefile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// The outline of a Corefile is what stands where in it:
//
//	(common) {              Snippets: (common)
//	    errors
//	}
//	example.org, a.test {   Block: Keys example.org, a.test
//	    import common         Directives: errors, in the place of the import, with the place of the snippet's line
//	    cache 30 {            Stanza: Name cache, Words 30 { success 100 }
//	        success 100
//	    }
//	}
//
// The parser of Corefiles keeps neither the places of keys nor those of braces, and stops at the first mistake. The
// outline goes on: it is for who has to say where something is missing, or what stands in the way of what.

// Word is a word of a Corefile with its place.
type Word struct {
	Text string // with environment variables in place
	Raw  string // as it was written
	File string
	Line int
}

// Place is file and line of the word, "Corefile:4".
func (w Word) Place() string { return placeOf(w.File, w.Line) }

// Stanza is a directive with all that belongs to it.
type Stanza struct {
	Name  Word
	Words []Word // what follows the name, with braces and what is between them
}

// Args is the words on the directive's own line.
func (s *Stanza) Args() []Word {
	for i, w := range s.Words {
		if w.Text == "{" || w.File != s.Name.File || w.Line != s.Name.Line {
			return s.Words[:i]
		}
	}
	return s.Words
}

// Has reports whether a line of the directive's block begins with the word option.
func (s *Stanza) Has(option string) bool {
	for i, w := range s.Words {
		if w.Text == option && (i == 0 || s.Words[i-1].Line != w.Line || s.Words[i-1].File != w.File) {
			return true
		}
	}
	return false
}

// Block is a server block.
type Block struct {
	Keys       []Word
	Directives []Stanza
}

// Outline is what stands where in a Corefile. It is read with a lenient eye, to tell people of places, also where
// the Corefile has mistakes; what is valid is for the parser to say.
type Outline struct {
	Blocks   []Block
	Open     []Word // the first words of the lines whose braces are open at the end, the outermost first
	Words    []Word // all words, those of imports in their place
	Snippets []Word // the first words of the definitions of snippets
}

// Read makes the outline of the Corefile at path, with the text body. Imports are followed.
func Read(path string, body []byte) *Outline {
	r := &outliner{rest: [][]Word{words(path, body)}, snippets: map[string][]Word{}}
	for r.has(r.at) {
		r.block()
	}
	r.out.Words = r.words
	return &r.out
}

// On is the words of a line.
func (o *Outline) On(file string, line int) (all []Word) {
	for _, w := range o.Words {
		if w.File == file && w.Line == line {
			all = append(all, w)
		}
	}
	return all
}

// words takes a text apart.
func words(path string, body []byte) (all []Word) {
	d := caddyfile.NewDispenser(path, bytes.NewReader(body))
	for d.Next() {
		text, _ := expandEnv(d.Val())
		all = append(all, Word{Text: text, Raw: d.Val(), File: path, Line: d.Line()})
	}
	return all
}

// These bound what imports may make of a Corefile; the parser has limits of its own.
const (
	maxImports = 10000 // as many as the parser follows of a snippet
	maxWords   = 1 << 20
)

// outliner reads words in their order.
type outliner struct {
	words    []Word   // up to the current one, and some behind it that were looked at
	rest     [][]Word // what follows, the next ones last
	at       int      // the current word
	snippets map[string][]Word
	imported int
	out      Outline
}

// has reports whether there is a word i, at most one behind those that were looked at.
func (r *outliner) has(i int) bool {
	for i >= len(r.words) && len(r.rest) > 0 {
		last := len(r.rest) - 1
		if next := r.rest[last]; len(next) > 0 {
			r.words, r.rest[last] = append(r.words, next[0]), next[1:]
		} else {
			r.rest = r.rest[:last]
		}
	}
	return i < len(r.words)
}

// first reports whether word i is the first of its line.
func (r *outliner) first(i int) bool {
	if i == 0 {
		return true
	}
	a, b := r.words[i-1], r.words[i]
	return a.File != b.File || a.Line+strings.Count(a.Raw, "\n") < b.Line
}

// imports puts what an import line at the current word names in its place. It reports false if there is no such line.
func (r *outliner) imports() bool {
	i := r.at
	// As for the parser, import is a word like others if it does not begin its line, or names nothing.
	if r.words[i].Raw != "import" || !r.first(i) || !r.has(i+1) || r.first(i+1) {
		return false
	}
	what, end := r.words[i+1], i+2
	for r.has(end) && !r.first(end) {
		end++
	}
	// A snippet goes before a file of its name. Relative names are looked for beside the file with the import.
	var in []Word
	if snippet, ok := r.snippets[what.Text]; ok {
		in = snippet
	} else {
		pattern := what.Text
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(what.File), pattern)
		}
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil {
				abs, _ := filepath.Abs(f)
				in = append(in, words(abs, text)...)
			}
		}
	}
	// What imports itself never ends. The parser refuses it; here the rest is left out.
	if r.imported++; r.imported > maxImports || len(r.words)+len(in) > maxWords {
		in = nil
	}
	r.rest = append(r.rest, slices.Clone(r.words[end:]), in)
	r.words = r.words[:i]
	return true
}

// block reads keys and what belongs to them.
func (r *outliner) block() {
	var keys []Word
	for more := false; r.has(r.at); r.at++ {
		for r.has(r.at) && r.imports() {
		}
		if !r.has(r.at) {
			break
		}
		w := r.words[r.at]
		if w.Text == "{" || len(keys) > 0 && !more && r.first(r.at) {
			break
		}
		more = strings.HasSuffix(w.Text, ",")
		if w.Text = strings.TrimSuffix(w.Text, ","); w.Text != "" {
			keys = append(keys, w)
		}
	}
	// The brace may stand on the next line. Without one, the block is the rest of the file.
	braced := r.has(r.at) && r.words[r.at].Text == "{"
	if braced {
		r.at++
	}
	if name, ok := snippetName(keys); ok {
		r.out.Snippets = append(r.out.Snippets, keys[0])
		from := r.at
		r.skip(keys[0])
		r.snippets[name] = slices.Clone(r.words[from:max(from, r.at-1)])
		return
	}
	b := Block{Keys: keys}
	closed := false
	for r.has(r.at) && !closed {
		switch {
		case r.imports():
		case r.words[r.at].Text == "}":
			r.at++
			closed = true
		default:
			b.Directives = append(b.Directives, r.directive())
		}
	}
	if braced && !closed && len(keys) > 0 {
		r.out.Open = slices.Insert(r.out.Open, 0, keys[0])
	}
	if len(keys) > 0 {
		r.out.Blocks = append(r.out.Blocks, b)
	}
}

// snippetName is the name of the snippet that is defined by keys.
func snippetName(keys []Word) (string, bool) {
	if len(keys) != 1 || !strings.HasPrefix(keys[0].Text, "(") || !strings.HasSuffix(keys[0].Text, ")") {
		return "", false
	}
	return keys[0].Text[1 : len(keys[0].Text)-1], true
}

// skip goes behind the brace that closes what by opened.
func (r *outliner) skip(by Word) {
	for depth := 1; r.has(r.at); r.at++ {
		switch r.words[r.at].Text {
		case "{":
			depth++
		case "}":
			depth--
		}
		if depth == 0 {
			r.at++
			return
		}
	}
	r.out.Open = append(r.out.Open, by)
}

// directive reads the directive at the current word.
func (r *outliner) directive() Stanza {
	s := Stanza{Name: r.words[r.at]}
	var open []Word
	begin := s.Name
	for r.at++; r.has(r.at); r.at++ {
		if r.first(r.at) {
			// The line is over, and with it the directive, unless it has a block. A brace that begins the next line
			// is taken for its own, too: that is a mistake that people make, and the parser does so as well.
			if len(open) == 0 && r.words[r.at].Text != "{" {
				return s
			}
			for r.has(r.at) && r.imports() {
			}
			if !r.has(r.at) {
				break
			}
			begin = r.words[r.at]
		}
		w := r.words[r.at]
		switch {
		case w.Text == "{":
			open = append(open, begin)
		case w.Text == "}" && len(open) == 0:
			return s
		case w.Text == "}":
			open = open[:len(open)-1]
		}
		s.Words = append(s.Words, w)
	}
	r.out.Open = append(r.out.Open, open...)
	return s
}
