package corefile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The parser and setup functions say what is wrong and where. What to do about it is found here, from the outline:
//
//	Unknown directive 'forwad'            : did you mean 'forward'?
//	Unknown directive 'success'           : the line before may be why: '30{' ends in '{', ...: put a space before it
//	Unexpected EOF                        : the block that begins at Corefile:1 ('.') is not closed: a '}' is missing
//	File to import not found: common      : the snippet (common) is defined below, at Corefile:4: ...
//	expecting data after last colon: ".:" : {$PORT} (the environment variable PORT is not set)
//
// What others have written comes first and is not changed, for programs look for it. The exception is what they say of
// a block that a brace too many begins: it is neither what is wrong nor where.

// remedied is an error with what to do about it.
type remedied struct {
	err    error
	remedy string
}

func (r *remedied) Error() string { return r.err.Error() + r.remedy }
func (r *remedied) Unwrap() error { return r.err }

// misled is an error that others have taken for another one.
//
// Both can be found in it.
type misled struct{ err, taken error }

func (m *misled) Error() string   { return m.err.Error() }
func (m *misled) Unwrap() []error { return []error{m.err, m.taken} }

// StrayKey is an error if the key of a block at w is a brace that closes nothing.
func StrayKey(key string, w Word) error {
	if key != "}" {
		return nil
	}
	return strayBrace(w)
}

// strayBrace is the error of a brace at w that closes nothing.
func strayBrace(w Word) error {
	return ErrorAt(w, "unexpected '}': no block is open; is one '}' too many above?")
}

// placed finds place and text of an error of the parser, or of setup, behind whatever plugins and caddy put before
// them, such as "plugin/cache: " or "error inspecting server blocks: ".
var placed = regexp.MustCompile(`(?s)(\S+):(\d+) - (?:Error during parsing|Syntax error): (.*)`)

// Explain adds to an error what to do about it, as far as the Corefile at path, with the text body, tells. err is why
// it was refused; directives is the names that there are. Errors without a place, and those that say it all, come back
// as they are.
func Explain(err error, path string, body []byte, directives []string) error {
	if err == nil || errors.As(err, new(*remedied)) {
		return err
	}
	m := placed.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	line, _ := strconv.Atoi(m[2])
	e := &explainer{Outline: Read(path, body), file: m[1], line: line, message: m[3], directives: directives}
	e.body = body
	if w := e.stray(); w.Line > 0 && !strings.HasPrefix(e.message, "unexpected '}'") {
		return &misled{strayBrace(w), err}
	}
	if text := e.remedy(); text != "" {
		return &remedied{err, text}
	}
	return err
}

// explainer finds the remedy of one error.
type explainer struct {
	*Outline
	body       []byte
	file       string
	line       int
	message    string
	directives []string
}

func (e *explainer) remedy() string {
	// A word of another language on the line is nearly always why, whatever the error says.
	if hints := e.hints(e.On(e.file, e.line)); len(hints) > 0 {
		return ": " + strings.Join(hints, "; ")
	}
	m := e.message
	switch {
	case strings.HasPrefix(m, "Unknown directive '"):
		return e.directive(m[len("Unknown directive '") : len(m)-1])
	case m == "Unexpected EOF", strings.HasSuffix(m, "expecting '}'"):
		return e.unclosed()
	case strings.HasPrefix(m, "Unexpected '}'"), strings.Contains(m, "line ending after '}'") && len(e.On(e.file, e.line)) > 1:
		return ": '}' stands at the begin of a line of its own, also that of a block with one directive"
	case strings.HasPrefix(m, "File to import not found: "):
		return e.imported(strings.TrimPrefix(m, "File to import not found: "))
	case strings.HasPrefix(m, "Wrong event name or event not supported: "): // of the directive on, which is caddy's
		return " (allowed: startup, shutdown, certrenew)"
	case strings.HasPrefix(m, "Import takes only one argument"):
		return ": a snippet takes no arguments, so {args[0]} and the like have no meaning; {$NAME} is the environment variable NAME"
	case strings.HasSuffix(m, "after 'import'"):
		return " (usage: import SNIPPET|FILE|PATTERN)"
	case strings.HasPrefix(m, "redeclaration of previously declared snippet "):
		for _, s := range e.Snippets {
			if name, _ := snippetName([]Word{s}); strings.HasSuffix(m, " "+name) {
				return ": the first is at " + s.Place() + "; give one of them another name"
			}
		}
	}
	return ""
}

// hints is what is odd about the words of a line, whatever the error is.
func (e *explainer) hints(line []Word) (hints []string) {
	for _, w := range line {
		hints = append(hints, oddities(w)...)
	}
	return hints
}

// oddities is what looks like another language in a word.
func oddities(w Word) (odd []string) {
	odd = unset(w.Raw)
	switch {
	case strings.Contains(w.Raw, "${"):
		odd = append(odd, fmt.Sprintf("'%s' is no variable: {$NAME} is", w.Raw))
	case strings.Contains(w.Raw, "{args[") || strings.Contains(w.Raw, "{args."):
		odd = append(odd, fmt.Sprintf("'%s' has no meaning: a snippet takes no arguments, and {$NAME} is the environment variable NAME", w.Raw))
	case strings.HasSuffix(w.Raw, ";") && !strings.ContainsAny(w.Raw, " \n"):
		odd = append(odd, fmt.Sprintf("'%s' ends in ';', which is part of the word: a directive ends with its line", w.Raw))
	case len(w.Raw) > 1 && strings.HasSuffix(w.Raw, "{") && !strings.HasPrefix(w.Raw, "{") && !strings.ContainsAny(w.Raw, " \n"):
		odd = append(odd, fmt.Sprintf("'%s' ends in '{', which is part of the word: put a space before it", w.Raw))
	}
	return odd
}

// renamed is names that people look for, and what the directive is called.
var renamed = map[string]string{"metrics": "prometheus", "proxy": "forward", "resolver": "forward", "zone": "file", "listen": "bind", "include": "import"}

// directive is about a directive of a name that there is not.
func (e *explainer) directive(name string) string {
	if strings.Contains(name, "\n") {
		return fmt.Sprintf(": the quote that begins at %s goes on over lines: is its end missing?", placeOf(e.file, e.line))
	}
	if hints := e.hints(e.before()); len(hints) > 0 {
		return ": the line before may be why: " + strings.Join(hints, "; ")
	}
	if now := renamed[name]; slices.Contains(e.directives, now) || now == "import" {
		return fmt.Sprintf(": did you mean '%s'?", now)
	}
	if near := Nearest(name, e.directives); near != "" {
		return fmt.Sprintf(": did you mean '%s'?", near)
	}
	// What looks like a zone, or has a block and nothing else, was hardly meant as a directive.
	const list = " ('coredns -plugins' lists those of this program)"
	line := e.On(e.file, e.line)
	if !strings.ContainsAny(name, ".:") && (len(line) == 0 || line[len(line)-1].Text != "{" || len(line) > 2) {
		return list
	}
	begin, shut := e.around()
	text := ": a zone begins a block, and a block is open here"
	if begin.Line > 0 {
		text = fmt.Sprintf(": a zone begins a block, and the one of %s ('%s') is open here", begin.Place(), begin.Text)
	}
	if shut != "" {
		return text + "; " + shut
	}
	return text + ": is a '}' missing above? Keys of one block stand on one line, or have a comma between them"
}

// before is the words of the line before that of the error that has any.
func (e *explainer) before() []Word {
	var last Word
	for _, w := range e.Words {
		if w.File == e.file && w.Line < e.line && w.Line > last.Line {
			last = w
		}
	}
	if last.Line == 0 {
		return nil
	}
	return e.On(last.File, last.Line)
}

// around is the first key of the block that the error is in, and which brace in it closes what it does not seem to.
func (e *explainer) around() (begin Word, shut string) {
	for _, b := range e.Blocks {
		if k := b.Keys[0]; k.File != e.file || k.Line > e.line {
			continue
		}
		begin, shut = b.Keys[0], ""
		for _, s := range b.Directives {
			// A brace that stands further left than the line whose block it closes was meant for what is around it.
			if n := len(s.Words); n > 1 && s.Words[n-1].Text == "}" && s.Name.File == e.file && s.Words[n-1].Line <= e.line &&
				e.indent(s.Words[n-1].Line) < e.indent(s.Name.Line) {
				shut = fmt.Sprintf("the '}' of line %d closes '%s' of line %d: put one more before it", s.Words[n-1].Line, s.Name.Text, s.Name.Line)
			}
		}
	}
	return begin, shut
}

// stray is a brace that closes nothing, which the parser takes for the key of the block that the error is in.
func (e *explainer) stray() (brace Word) {
	for _, b := range e.Blocks {
		if k := b.Keys[0]; k.File != e.file || k.Line > e.line {
			continue
		}
		brace = Word{}
		if i := slices.IndexFunc(b.Keys, func(k Word) bool { return k.Raw == "}" }); i >= 0 {
			brace = b.Keys[i]
		}
	}
	return brace
}

// indent is how many blanks are at the begin of a line of the Corefile.
func (e *explainer) indent(line int) int {
	lines := strings.Split(string(e.body), "\n")
	if line < 1 || line > len(lines) {
		return 0
	}
	text := lines[line-1]
	return len(text) - len(strings.TrimLeft(text, " \t"))
}

// unclosed is about a brace, or a quote, that is open at the end.
func (e *explainer) unclosed() string {
	// An open quote takes all that follows into one word, the last one, and the braces with it.
	if n := len(e.Words); n > 0 {
		if last := e.Words[n-1]; strings.Contains(last.Raw, "\n") {
			return fmt.Sprintf(": the quote that begins at %s is not closed", last.Place())
		}
	}
	if len(e.Open) == 0 {
		return ""
	}
	last := e.Open[len(e.Open)-1]
	return fmt.Sprintf(": the block that begins at %s ('%s') is not closed: a '}' is missing", last.Place(), last.Text)
}

// imported is about an import of what there is not.
func (e *explainer) imported(name string) string {
	var names []string
	for _, s := range e.Snippets {
		n, _ := snippetName([]Word{s})
		if n == name {
			return fmt.Sprintf(": the snippet (%s) is defined below, at %s: define it before it is imported", n, s.Place())
		}
		names = append(names, n)
	}
	text := ": there is neither a snippet nor a file of this name"
	if near := Nearest(name, names); near != "" {
		return text + fmt.Sprintf(": did you mean '%s'? (snippets: %s)", near, strings.Join(names, ", "))
	}
	if len(names) > 0 {
		return text + fmt.Sprintf(" (snippets: %s)", strings.Join(names, ", "))
	}
	return text + "; files are looked for in the folder of the file that imports them"
}
