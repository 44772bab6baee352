package tsig

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/keyring"

	"github.com/miekg/dns"
)

// parseKeyFile reads keys as BIND has them in its configuration, and returns them by name:
//
//	key "name" {
//	    algorithm hmac-sha256;
//	    secret "base64";
//	};
//
// The algorithm may stand there or not: a client's query tells which one it used, and only who signs queries of our own
// wants to know it; one that is not supported counts as none. Comments begin with //, # or /*.
func parseKeyFile(r io.Reader) (map[string]keyring.Key, error) {
	p := keyParser{lexer: lexer{r: bufio.NewReader(r), line: 1}}
	keys := map[string]keyring.Key{}
	for {
		word, err := p.next()
		switch {
		case err == io.EOF:
			return keys, nil
		case err != nil:
			return nil, err
		case word != "key":
			return nil, p.unexpected(word)
		}
		name, key, err := p.key()
		if err != nil {
			return nil, err
		}
		if _, ok := keys[name]; ok {
			return nil, fmt.Errorf("line %d: key %q redefined", p.line, name)
		}
		keys[name] = key
	}
}

type keyParser struct{ lexer }

// key reads the rest of one key.
func (p *keyParser) key() (name string, k keyring.Key, err error) {
	if name, err = p.value(); err != nil {
		return "", k, err
	}
	name = dns.CanonicalName(name)
	if err = p.expect("{"); err != nil {
		return "", k, err
	}
	for {
		word, err := p.value()
		if err != nil {
			return "", k, err
		}
		switch word {
		case "}":
			if k.Secret == "" {
				return "", k, fmt.Errorf("line %d: expected secret for key %q", p.line, name)
			}
			return name, k, p.expect(";")
		case "algorithm":
			if word, err = p.value(); err == nil {
				k.Algorithm, _ = keyring.Algorithm(word)
			}
		case "secret":
			k.Secret, err = p.value()
		default:
			err = p.unexpected(word)
		}
		if err != nil {
			return "", k, err
		}
		if err := p.expect(";"); err != nil {
			return "", k, err
		}
	}
}

// value is the next word, which there must be.
func (p *keyParser) value() (string, error) {
	word, err := p.next()
	if err == io.EOF {
		err = fmt.Errorf("line %d: %w", p.line, io.ErrUnexpectedEOF)
	}
	return word, err
}

func (p *keyParser) expect(want string) error {
	word, err := p.value()
	if err == nil && word != want {
		return fmt.Errorf("%w, want %q", p.unexpected(word), want)
	}
	return err
}

func (p *keyParser) unexpected(word string) error {
	return fmt.Errorf("line %d: unexpected token %q", p.line, word)
}

// lexer splits text into words, strings in quotes, and the signs {, } and ;.
type lexer struct {
	r    *bufio.Reader
	line int
}

// next is the next token, io.EOF behind the last.
func (l *lexer) next() (string, error) {
	c, err := l.start()
	if err != nil {
		return "", err
	}
	switch c {
	case '{', '}', ';':
		return string(c), nil
	case '"':
		text, err := l.r.ReadString('"')
		if err != nil {
			return "", fmt.Errorf("line %d: string without end", l.line)
		}
		l.line += strings.Count(text, "\n")
		return text[:len(text)-1], nil
	}
	word := []byte{c}
	for {
		c, err := l.r.ReadByte()
		if err != nil {
			break
		}
		if strings.IndexByte(" \t\r\n{};\"", c) >= 0 {
			l.r.UnreadByte()
			break
		}
		word = append(word, c)
	}
	return string(word), nil
}

// start is the first octet of the next token.
func (l *lexer) start() (byte, error) {
	for {
		c, err := l.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch {
		case c == '\n':
			l.line++
		case c == ' ' || c == '\t' || c == '\r':
		case c == '#', c == '/' && l.peek() == '/':
			if _, err := l.r.ReadString('\n'); err != nil {
				return 0, err
			}
			l.line++
		case c == '/' && l.peek() == '*':
			if err := l.comment(); err != nil {
				return 0, err
			}
		default:
			return c, nil
		}
	}
}

func (l *lexer) peek() byte {
	b, err := l.r.Peek(1)
	if err != nil {
		return 0
	}
	return b[0]
}

// comment reads up to the end of a comment that began with /*.
func (l *lexer) comment() error {
	l.r.ReadByte()
	for before := byte(0); ; {
		c, err := l.r.ReadByte()
		if err != nil {
			return fmt.Errorf("line %d: comment without end", l.line)
		}
		if before == '*' && c == '/' {
			return nil
		}
		if c == '\n' {
			l.line++
		}
		before = c
	}
}
