package custom

import (
	"errors"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// moduleAt is the module whose folder it is.
func moduleAt(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	m := moduleLine.FindSubmatch(text)
	if m == nil {
		return "", errors.New("go.mod names no module")
	}
	return string(m[1]), nil
}

// registers is the names that the package in a folder gives to plugin.Register, as texts or as constants of the
// package. One whose names are made otherwise has none.
func registers(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	r := reader{constants: map[string]string{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := r.read(name); err != nil {
			return nil, err
		}
	}
	for _, arg := range r.calls {
		if text, ok := r.textOf(arg); ok && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names, nil
}

// word is a token of a file, with its text if that may be more than one.
type word struct {
	token.Token
	text string
}

// reader reads the tokens of a package, of which it need not know more. With the parser of the standard library the server
// would be 300 kB larger.
type reader struct {
	constants map[string]string // and variables that begin as a text
	calls     []word            // first arguments
}

// read reads a file.
func (r *reader) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var failed scanner.ErrorList
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(name, -1, len(text)), text, failed.Add, 0)
	var words []word
	for {
		_, t, text := s.Scan()
		if t == token.EOF {
			break
		}
		words = append(words, word{t, text})
	}
	for i, w := range words {
		switch {
		case w.Token == token.CONST, w.Token == token.VAR:
			r.declare(words[i+1:])
		case w.Token == token.PERIOD && i+3 < len(words) && words[i+1] == (word{token.IDENT, "Register"}) && words[i+2].Token == token.LPAREN:
			if args := split(words[i+3:], token.COMMA); len(args) == 2 && len(args[0]) == 1 {
				r.calls = append(r.calls, args[0][0])
			}
		}
	}
	return failed.Err()
}

// declare reads a declaration behind its keyword: one, or several in parentheses.
func (r *reader) declare(words []word) {
	all := split(words, token.SEMICOLON)
	if len(words) > 0 && words[0].Token == token.LPAREN {
		all = split(words[1:], token.SEMICOLON)
	} else if len(all) > 1 {
		all = all[:1]
	}
	for _, spec := range all {
		at := slices.IndexFunc(spec, func(w word) bool { return w.Token == token.ASSIGN })
		if at < 0 {
			continue
		}
		names := split(spec[:at], token.COMMA)
		for i, value := range split(spec[at+1:], token.COMMA) {
			if i < len(names) && len(names[i]) > 0 && len(value) == 1 && value[0].Token == token.STRING {
				r.constants[names[i][0].text], _ = r.textOf(value[0])
			}
		}
	}
}

// split splits words at a token, up to the end of the parentheses that they begin in. At the end there may be one more token.
func split(words []word, at token.Token) (parts [][]word) {
	depth, from := 0, 0
	end := func(i int) [][]word {
		if from == i {
			return parts
		}
		return append(parts, words[from:i])
	}
	for i, w := range words {
		switch w.Token {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		}
		switch {
		case depth < 0:
			return end(i)
		case depth == 0 && w.Token == at:
			parts, from = append(parts, words[from:i]), i+1
		}
	}
	return end(len(words))
}

// textOf is the text that a word is, if it is a literal or one of the constants.
func (r *reader) textOf(w word) (string, bool) {
	switch w.Token {
	case token.STRING:
		text, err := strconv.Unquote(w.text)
		return text, err == nil
	case token.IDENT:
		text, ok := r.constants[w.text]
		return text, ok
	}
	return "", false
}
