package corefile

import (
	"strings"
	"testing"

	"github.com/coredns/caddy/caddyfile"
)

// Words are read as by the parser.
func TestExpandEnv(t *testing.T) {
	for name, value := range map[string]string{"A": "a", "B": "{$A}b", "C": "{%B%}", "D": "x{$", "E": "", "F G": "fg", "H": "{$B}{$B}"} {
		t.Setenv(name, value)
	}
	for _, word := range []string{
		"{$A}", "{%A%}", "{$A}.{$A}", "{%B%}", "{$C}", "{%C%}", "{$D}A}", "{$E}.", "{$F}", "x{$H}y", "{$}", "{%%}", "{%}", "{$A", "{%A}", "{$A}{$", "{$}{$A}", "{%%}{%A%}",
		"{$A%}", "{%A{$B}%}", strings.Repeat("{$A}", 2000),
	} {
		blocks, err := caddyfile.Parse("Corefile", strings.NewReader("\"k"+word+"\" {\n}\n"), nil)
		if err != nil || len(blocks) != 1 {
			t.Fatalf("%q: %v", word, err)
		}
		if got, ends := expandEnv("k" + word); !ends || got != blocks[0].Keys[0] {
			t.Errorf("%q: got %q, %v, the parser reads %q", word, got, ends, blocks[0].Keys[0])
		}
	}
}

func TestCheckVariables(t *testing.T) {
	for name, value := range map[string]string{"A": "{$A}", "B": "{$B}{$B}", "C": "{$D}", "D": "c{$C}", "E": "{%E%}", "F": "{%F%}", "G": "{$A", "H": "{$G}}"} {
		t.Setenv(name, value)
	}
	for word, want := range map[string]string{
		"{$A}": "{$A} is '{$A}'", "x{$A}y": "{$A} is", "{$B}": "{$B} is '{$B}{$B}'", "{$C}": "{$C} is '{$D}'", "{%E%}": "{%E%} is", "{$H}": "{$H} is '{$G}}'",
		"{$F}": "", "{$G}": "", "{$NONE}": "",
	} {
		err := Read("Corefile", []byte(".\nerrors\nlog \""+word+"\"\n")).CheckVariables()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "Corefile:3 - Error during parsing: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got error %v, want %q", word, err, want)
		}
	}
}
