// Package api keeps the exported API as other people's plugins and programs compile against it.
//
// declared.txt has all of it, used.txt what plugins were seen to use, and owed.txt what has not been built
// yet, each line with the milestone that brings it. What is built has to be taken out there.
package api

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// owed is a line of owed.txt: a milestone, a package, and perhaps the begin of a declaration.
type owed struct {
	line, pkg, text string
	used            bool
}

func readOwed(t *testing.T) (all []*owed) {
	t.Helper()
	text, err := os.ReadFile("owed.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		if len(f) < 2 || f[0] < "2" || f[0] > "7" {
			t.Fatalf("owed.txt: %q: a milestone and a package are needed", line)
		}
		o := &owed{line: line, pkg: f[1]}
		if len(f) == 3 {
			o.text = f[2]
		}
		all = append(all, o)
	}
	return all
}

func (o *owed) covers(d declaration) bool {
	return o.pkg == d.pkg && strings.HasPrefix(d.text, o.text)
}

func TestDeclarations(t *testing.T) {
	s := sourcesOf(t)
	debts := readOwed(t)
	checked := 0
	for _, file := range []string{"declared.txt", "used.txt"} {
		list := read(t, file)
		if len(list) < 200 {
			t.Fatalf("%s: only %d lines", file, len(list))
		}
	lines:
		for _, d := range list {
			err := s.verify(d)
			for _, o := range debts {
				if err != nil && o.covers(d) {
					o.used = true
					continue lines
				}
			}
			if err != nil {
				t.Errorf("%s: %s: %v", file, d, err)
			}
			checked++
		}
	}
	for _, o := range debts {
		if !o.used {
			t.Errorf("owed.txt: %q is built: take the line out", o.line)
		}
	}
	if checked < 600 {
		t.Errorf("only %d declarations were checked", checked)
	}
	t.Logf("%d declarations hold, %d lines are owed", checked, len(debts))
}

// TestVerify shows that a wrong declaration is found.
func TestVerify(t *testing.T) {
	s := sourcesOf(t)
	for text, want := range map[string]string{
		"func Error(name string, err error) error":  "",
		"func Error(name string, err error) string": "it is func",
		"func Missing()": "there is no Missing",
		"func (z Zones) Matches(qname string) string":               "",
		"func (z Zones) Matches(qname string) bool":                 "it is func",
		"func (z Zones) Missing()":                                  "has no method",
		"const Namespace = \"coredns\"":                             "",
		"const Namespace = \"other\"":                               "Namespace is",
		"const ErrOnce = 1":                                         "is a *types.Var",
		"var ErrOnce error":                                         "",
		"var ErrOnce string":                                        "of type error",
		"type Zones []string":                                       "",
		"type Zones []int":                                          "Zones is",
		"type Options struct{ Missing int }":                        "has no field",
		"type Handler interface{ Name() string }":                   "Handler is",
		"type Plugin func(plugin.Handler) plugin.Handler":           "",
		"func Register(name string, action caddy.SetupFunc)":        "",
		"func Register(name string, action func(caddy.Controller))": "it is func",
		"field Options.Missing string":                              "has no field",
	} {
		err := s.verify(declaration{"plugin", text, true})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := s.verify(declaration{pkg: "plugin/missing", text: "func A()"}); err == nil || !strings.Contains(fmt.Sprint(err), "no such package") {
		t.Errorf("a missing package: %v", err)
	}
}
