package corefile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Doc is what is known of a directive, for README checks, man pages and -validate.
type Doc struct {
	Name    string
	Syntax  string // as in the README: the line and, if it has options, the block
	Options []OptionDoc
}

// OptionDoc is what is known of one option.
type OptionDoc struct{ Name, Syntax, Help string }

var registry struct {
	sync.Mutex
	docs []Doc
}

// Define notes a directive for Docs and returns it. It is called from package variables.
func Define[T any](d *Directive[T]) *Directive[T] {
	define(readerOf(d))
	return d
}

func define(r *reader) {
	d := r.doc()
	registry.Lock()
	defer registry.Unlock()
	registry.docs = append(registry.docs, d)
}

// Docs is all directives that are linked into the program, by name.
func Docs() []Doc {
	registry.Lock()
	defer registry.Unlock()
	docs := slices.Clone(registry.docs)
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.Name, b.Name) })
	return docs
}

// Doc describes the directive.
func (d *Directive[T]) Doc() Doc { return readerOf(d).doc() }

func (r *reader) doc() Doc {
	doc := Doc{Name: r.name}
	var b strings.Builder
	b.WriteString(join(r.name, r.args.Syntax))
	if r.unlistedSyntax != "" {
		fmt.Fprintf(&b, " {\n    %s\n", r.unlistedSyntax)
		doc.Options = append(doc.Options, OptionDoc{Name: r.unlistedSyntax})
	}
	for _, o := range r.options {
		if o.hidden {
			continue
		}
		if len(doc.Options) == 0 {
			b.WriteString(" {\n")
		}
		doc.Options = append(doc.Options, OptionDoc{o.Name, o.Syntax, o.Help})
		fmt.Fprintf(&b, "    %s\n", join(o.Name, o.Syntax))
	}
	if len(doc.Options) > 0 {
		b.WriteString("}")
	}
	doc.Syntax = b.String()
	return doc
}

// ReadmeSyntax is the first indented or fenced block of the section "Syntax" of a plugin's README.
func ReadmeSyntax(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, section, ok := strings.Cut(string(text), "\n## Syntax\n")
	if !ok {
		return "", fmt.Errorf("%s: no section Syntax", path)
	}
	_, block, ok := strings.Cut(section, "\n```")
	if !ok {
		return "", fmt.Errorf("%s: no block in section Syntax", path)
	}
	_, block, _ = strings.Cut(block, "\n") // the info string
	block, _, ok = strings.Cut(block, "\n```")
	if !ok {
		return "", fmt.Errorf("%s: a block is not closed", path)
	}
	return block, nil
}
