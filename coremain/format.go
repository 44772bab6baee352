package coremain

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// What fmt does with the result, instead of printing it.
var writeBack, showDiff bool

func formatFlags(f *flag.FlagSet) {
	f.StringVar(&conf, "conf", "", "Corefile to format (default \""+defaultFile+"\"); - is standard input")
	f.BoolVar(&writeBack, "w", false, "Write the result to the file")
	f.BoolVar(&showDiff, "d", false, "Print the difference; the exit status is 1 if there is any")
}

// formatCommand is coredns fmt. It prints the Corefile, or writes it, or tells what would change.
func formatCommand(args []string, out io.Writer) (int, error) {
	if err := corefileArg(args); err != nil {
		return 2, err
	}
	if writeBack && showDiff {
		return 2, errors.New("-w and -d exclude each other")
	}
	name := conf
	if name == "" {
		name = defaultFile
	}
	var text []byte
	var err error
	if name == "-" || name == "stdin" {
		name, writeBack = "standard input", false
		text, err = io.ReadAll(os.Stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return 1, err
	}
	formatted, err := corefile.Format(text)
	if err != nil {
		return 1, fmt.Errorf("%s: %w", name, err)
	}
	switch same := bytes.Equal(text, formatted); {
	case showDiff && same, writeBack && same:
		return 0, nil
	case showDiff:
		_, err := io.WriteString(out, difference(name, string(text), string(formatted)))
		return 1, err
	case writeBack:
		return 0, replaceFile(name, formatted)
	}
	_, err = out.Write(formatted)
	return 0, err
}

// replaceFile writes a file anew, with the owner and rights that it has, so that who reads it sees the old text or the
// new, also when the machine has gone down. A link stays one.
func replaceFile(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return zonefile.Replace(name, filepath.Base(name)+".*.new", func(f *os.File) error {
		if _, err := f.Write(text); err != nil {
			return err
		}
		keepOwner(f, info)
		return f.Chmod(info.Mode().Perm())
	}, nil)
}

// around is how many lines of context a difference has.
const around = 3

// edit is a line of a difference: ' ', '-' or '+', and the text.
type edit struct {
	kind byte
	text string
}

// difference is what makes after out of before, in the unified format.
func difference(name, before, after string) string {
	edits := editLines(strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n"))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s (formatted)\n", name, name)
	for i := 0; i < len(edits); {
		first := slices.IndexFunc(edits[i:], func(e edit) bool { return e.kind != ' ' })
		if first < 0 {
			break
		}
		first += i
		last := first
		for j := first; j < len(edits) && j-last <= 2*around; j++ {
			if edits[j].kind != ' ' {
				last = j
			}
		}
		from, to := max(0, first-around), min(len(edits), last+1+around)
		writeHunk(&b, edits, from, to)
		i = to
	}
	return b.String()
}

// writeHunk writes edits[from:to] with the numbers of their lines.
func writeHunk(b *strings.Builder, edits []edit, from, to int) {
	count := func(part []edit, kind byte) (n int) {
		for _, e := range part {
			if e.kind == ' ' || e.kind == kind {
				n++
			}
		}
		return n
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", count(edits[:from], '-')+1, count(edits[from:to], '-'), count(edits[:from], '+')+1, count(edits[from:to], '+'))
	for _, e := range edits[from:to] {
		fmt.Fprintf(b, "%c%s\n", e.kind, e.text)
	}
}

// editLines is the shortest way from x to y. Formatting leaves the words, so lines that fit are near each other: it
// looks ahead line by line, and takes the first that fits.
func editLines(x, y []string) (edits []edit) {
	for len(x) > 0 || len(y) > 0 {
		if len(x) > 0 && len(y) > 0 && x[0] == y[0] {
			edits = append(edits, edit{' ', x[0]})
			x, y = x[1:], y[1:]
			continue
		}
		dx, dy := nextSame(x, y)
		for _, l := range x[:dx] {
			edits = append(edits, edit{'-', l})
		}
		for _, l := range y[:dy] {
			edits = append(edits, edit{'+', l})
		}
		x, y = x[dx:], y[dy:]
	}
	return edits
}

// nextSame is how many lines of x and y come before one that both have.
func nextSame(x, y []string) (dx, dy int) {
	const far = 200
	for sum := 1; sum < min(far, len(x)+len(y)); sum++ {
		for dx := 0; dx <= sum; dx++ {
			if dy := sum - dx; dx < len(x) && dy < len(y) && x[dx] == y[dy] && strings.TrimSpace(x[dx]) != "" {
				return dx, dy
			}
		}
	}
	return len(x), len(y)
}
