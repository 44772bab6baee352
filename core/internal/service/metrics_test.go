package service

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each reason that is counted somewhere is known from the start, and stands in the README.
func TestLimitReasons(t *testing.T) {
	readme, err := os.ReadFile("../../../plugin/limits/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`(?:Limited\(|reason (?::?=) )"([a-z_]+)"`)
	counted := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllSubmatch(text, -1) {
			counted[string(m[1])] = true
		}
	}
	for reason := range counted {
		if !slices.Contains(limitReasons, reason) {
			t.Errorf("%s is not counted from 0", reason)
		}
	}
	for _, reason := range limitReasons {
		if !counted[reason] {
			t.Errorf("nobody counts %s", reason)
		}
		if !strings.Contains(string(readme), "`"+reason+"`") {
			t.Errorf("the README of limits does not know %s", reason)
		}
	}
}
