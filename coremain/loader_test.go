package coremain

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Corefile without a server block is the built-in configuration at the start. A reload refuses one that had some.
func TestEmptiedCorefile(t *testing.T) {
	emptied = blocksSeen{}
	t.Cleanup(func() { emptied = blocksSeen{} })
	path := filepath.Join(t.TempDir(), "Corefile")
	for _, step := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{". {\nwhoami\n}\n", ""},
		{"", "has no server block any more"},
		{"(snippet) {\nwhoami\n}\n", "has no server block any more"},
		{"# . {\n# whoami\n# }\n", "has no server block any more"},
		{". {\nwhoami\n", ""}, // told when it is set up
		{"", "has no server block any more"},
		{"example.org\n", ""},
	} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		input, err := loadFile(path, serverType)
		if step.want == "" && (err != nil || string(input.Body()) != step.text) || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("%q: %v", step.text, err)
		}
	}
}

// What the parser warns of is told once, when the configuration is set up.
func TestLoadingWarnsOfNothing(t *testing.T) {
	emptied = blocksSeen{}
	var logged bytes.Buffer
	log.SetOutput(&logged)
	t.Cleanup(func() {
		log.SetOutput(os.Stderr)
		emptied = blocksSeen{}
	})
	path := filepath.Join(t.TempDir(), "Corefile")
	for _, text := range []string{"import no.*\n. {\nwhoami\n}\n", ". {\nimport no.*\nwhoami\n}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadFile(path, serverType); err != nil || logged.Len() > 0 {
			t.Errorf("%q: %v, logged %q", text, err, &logged)
		}
	}
}

// A variable whose value names itself is refused: the parser would put it in place for ever.
func TestLoadingEnds(t *testing.T) {
	emptied = blocksSeen{}
	t.Cleanup(func() { emptied = blocksSeen{} })
	t.Setenv("LOADING_ZONE", "{$LOADING_ZONE}.")
	path := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(path, []byte("# zones\n{$LOADING_ZONE} {\nwhoami\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFile(path, serverType); err == nil || !strings.Contains(err.Error(), path+":2 - Error during parsing: the values of environment variables lead back") {
		t.Error(err)
	}
}
