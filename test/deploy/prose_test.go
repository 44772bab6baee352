package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// vale is the linter as the Makefile names it.
func vale(t *testing.T, args ...string) []byte {
	t.Helper()
	tool(t, "cc", "gcc")
	tool(t, "go", "golang")
	m := regexp.MustCompile(`(?m)^VALE +:= (\S+)$`).FindStringSubmatch(read(t, here("..", "Makefile")))
	if m == nil {
		t.Fatal("the Makefile does not name the linter")
	}
	cmd := exec.Command("go", append([]string{"run", m[1], "--output", "JSON", "--no-exit", "--config", here("..", "docs", "style", "vale.ini")}, args...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil && unreachable.MatchString(complaints.String()) {
		t.Skip("vale cannot be fetched: make prose with a network")
	}
	if err != nil {
		t.Fatalf("%v: %s%s", err, complaints.String(), out)
	}
	return out
}

// Pages are written by the rules in docs/style.
func TestProse(t *testing.T) {
	var files []string
	for _, pattern := range []string{"plugin/*/README.md", "docs/*.md", "man/*.md", "README.md", "CONTRIBUTING.md", "deploy/README.md",
		"bench/README.md", "examples/README.md"} {
		some, err := filepath.Glob(here("..", filepath.FromSlash(pattern)))
		if err != nil || len(some) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, some...)
	}
	var alerts map[string][]struct {
		Line           int
		Check, Message string
	}
	if err := json.Unmarshal(vale(t, files...), &alerts); err != nil {
		t.Fatal(err)
	}
	for file, all := range alerts {
		for _, a := range all {
			t.Errorf("%s:%d: %s (%s)", file, a.Line, a.Message, a.Check)
		}
	}
}

// Each rule finds what it is for: a linter that finds nothing would pass every page.
func TestProseRules(t *testing.T) {
	wrong := map[string]string{
		"Plain.Order":        "Not kept are errors.",
		"Plain.That":         "It is the one that wants that which you have, and the one that says that it has.",
		"Plain.Terms":        "The slave has the zone.",
		"Plain.Words":        "It does so in order to answer.",
		"Plain.Noise":        "Please note the port.",
		"Plain.Contractions": "It doesn't answer.",
		"Plain.Repetition":   "It has the the port.",
		"Plain.Length":       strings.Repeat("word ", 46) + "ends.",
	}
	rules, err := filepath.Glob(here("..", "docs", "style", "Plain", "*.yml"))
	if err != nil || len(rules) != len(wrong) {
		t.Errorf("%d rules, %d of them are tried; %v", len(rules), len(wrong), err)
	}
	file := filepath.Join(t.TempDir(), "page.md")
	for rule, text := range wrong {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := vale(t, file); !strings.Contains(string(out), `"`+rule+`"`) {
			t.Errorf("%s does not find %q: %s", rule, text, out)
		}
	}
}
