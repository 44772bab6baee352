package coremain

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inDocs is a call of the program in a page: in backquotes, or on an indented line.
var inDocs = regexp.MustCompile("(?m)`coredns ([^`]+)`|^    (?:\\./)?coredns (.+)$")

// TestCommandsInDocs finds calls of the program in pages and READMEs that it would refuse.
func TestCommandsInDocs(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../docs/*.md", "../plugin/*/README.md", "../deploy/README.md", "../README.md"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	looked := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inDocs.FindAllStringSubmatch(string(text), -1) {
			call, _, _ := strings.Cut(strings.ReplaceAll(m[1]+m[2], `\|`, "|"), " 2>")
			looked++
			if why := refused(strings.Fields(call)); why != "" {
				t.Errorf("%s: coredns %s: %s", name, call, why)
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d calls were found", looked)
	}
}

// refused is why the program would not take these arguments, "" if it does.
func refused(args []string) string {
	if strings.HasPrefix(args[0], "-") {
		if name, _, _ := strings.Cut(args[0][1:], "="); flag.Lookup(name) == nil {
			return "no such flag"
		}
		return ""
	}
	if args[0] == "COMMAND" { // any of them
		return ""
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return "no such command"
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	if all[i].flags != nil {
		all[i].flags(flags)
	}
	rest, err := parseAnywhere(flags, args[1:])
	if err != nil {
		return err.Error()
	}
	if args[0] != "ctl" || len(rest) == 0 || rest[0] == "COMMAND" {
		return ""
	}
	c, rest := findCtl(rest)
	if c == nil {
		return "no such command of ctl"
	}
	if strings.ContainsAny(strings.Join(rest, " "), "|[") { // a form, not a call
		return ""
	}
	if _, _, _, err := c.request(rest); err != nil {
		return err.Error()
	}
	return ""
}
