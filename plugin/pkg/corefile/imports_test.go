package corefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckImports(t *testing.T) {
	t.Setenv("GOLDEN_IMPORT", "one")
	for _, tc := range []struct{ name, files, err string }{
		{"itself", "Corefile: import Corefile", "Corefile imports "},
		{"itself, in a block", "Corefile: . {|  whoami|  import ./Corefile|}", "Corefile imports "},
		{"by way of others", "Corefile: import a*|;a1: whoami|;a2: errors|import b|;b: import Core?ile", "Corefile imports "},
		{"others among themselves", "Corefile: import a|;a: import b|;b: import a", "b imports "},
		{"by the environment", "Corefile: import {$GOLDEN_IMPORT}|;one: import {%GOLDEN_IMPORT%}", "one imports "},
		{"twice is no cycle", "Corefile: import a|import a|import b|;a: whoami|;b: import a", ""},
		{"a snippet", "Corefile: (a) {| import a|}|. {| import a|}|;a: import Corefile", ""},
		{"no import", "Corefile: . {| log import Corefile|}", ""},
		{"missing", "Corefile: import nothing|import", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for f := range strings.SplitSeq(tc.files, ";") {
				name, text, _ := strings.Cut(f, ": ")
				if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "|", "\n")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			main := filepath.Join(dir, "Corefile")
			body, _ := os.ReadFile(main)
			err := CheckImports(main, body)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), "import cycle") || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}
