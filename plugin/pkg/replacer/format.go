package replacer

import (
	"context"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/metadata"
)

// Format is a parsed format.
type Format struct {
	parts    []part
	lookedUp bool // it tells the name that was looked up last
}

// part is a text, a variable or a label.
type part struct {
	text  string
	value variable // nil if the part is a text or a label
	label string   // of metadata, "" if the part is none
}

// formats holds every Format that was parsed, by its text: there are as many as configurations have.
var formats sync.Map

// Parse returns the Format that s is. A name in braces that is no variable is text like any other.
func Parse(s string) *Format {
	if f, ok := formats.Load(s); ok {
		return f.(*Format)
	}
	f := parse(s)
	formats.Store(s, f)
	return f
}

// parse cuts s into texts, and what stands in braces.
func parse(s string) *Format {
	f := new(Format)
	text := 0 // begin of the text that is not yet a part
	for i := 0; i < len(s); i++ {
		if s[i] != '{' {
			continue
		}
		n := strings.IndexAny(s[i+1:], "{}")
		if n < 0 {
			break
		}
		end := i + 1 + n
		p, ok := newPart(s[i+1 : end])
		if s[end] == '{' || !ok {
			i = end - 1 // a brace within braces may begin a variable
			continue
		}
		if text < i {
			f.parts = append(f.parts, part{text: s[text:i]})
		}
		f.parts = append(f.parts, p)
		f.lookedUp = f.lookedUp || s[i+1:end] == looked
		text, i = end+1, end
	}
	if text < len(s) {
		f.parts = append(f.parts, part{text: s[text:]})
	}
	return f
}

// newPart is the variable or label that stands in braces as name.
func newPart(name string) (part, bool) {
	if v, ok := variables[name]; ok {
		return part{value: v}, true
	}
	// Whether a plugin sets it is known only when a query comes.
	if label, ok := strings.CutPrefix(name, "/"); ok && metadata.IsLabel(label) {
		return part{label: label}, true
	}
	return part{}, false
}

// HasLookedUp reports whether the format tells the name that was looked up last: see Facts.LookedUp.
func (f *Format) HasLookedUp() bool { return f.lookedUp }

// HasLabels reports whether the format reads labels of metadata.
func (f *Format) HasLabels() bool {
	for i := range f.parts {
		if f.parts[i].label != "" {
			return true
		}
	}
	return false
}

// Append appends the line about one query to b. Labels are read from ctx.
func (f *Format) Append(b []byte, ctx context.Context, facts *Facts) []byte { //nolint:revive // what is appended to comes first
	for i := range f.parts {
		switch p := &f.parts[i]; {
		// A variable knows what it writes if there is no reply.
		case p.value != nil:
			b = p.value(b, facts)
		case p.label != "":
			if value := metadata.ValueFunc(ctx, p.label); value != nil {
				b = append(b, value()...)
			} else {
				b = append(b, EmptyValue...)
			}
		case len(p.text) == 1: // most texts are a space
			b = append(b, p.text[0])
		default:
			b = append(b, p.text...)
		}
	}
	return b
}
