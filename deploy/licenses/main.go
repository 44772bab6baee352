// Command licenses prints the licences and notices of what a program of Go was built from, as those want it who wrote that: MIT, BSD and
// Apache licences are to go along with binaries.
//
//	go run ./deploy/licenses FILE
//
// The modules are those that the linker wrote into FILE; their texts come from where the go command keeps them, so it runs in the folder
// of the module that FILE was built from. A text that several modules have stands there once. A module without any, such as a
// plugin of one's own, is named on the standard error.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// legal is how files are named that have licences, notices and the like.
var legal = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notices?|copyright|patents|third[-_]party)([-._].*)?$`)

// text is what one file or more have in it, and which.
type text struct {
	body  string
	files []string // module@version, and the path in it
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licenses FILE")
		os.Exit(2)
	}
	if err := print(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// print writes the texts that belong to a program.
func print(w io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("what %s was built from: %w", program, err)
	}
	args := []string{"list", "-m", "-f", "{{.Path}}@{{.Version}} {{.Dir}}"}
	for _, m := range info.Deps {
		args = append(args, m.Path)
	}
	root, err := run("env", "GOROOT")
	if err != nil {
		return err
	}
	modules := info.GoVersion + " " + root
	if len(info.Deps) > 0 {
		listed, err := run(args...)
		if err != nil {
			return err
		}
		modules += "\n" + listed
	}
	var all []text
	for line := range strings.SplitSeq(modules, "\n") {
		name, dir, _ := strings.Cut(line, " ")
		if all, err = gather(all, name, dir); err != nil {
			return err
		}
	}
	for _, t := range all {
		fmt.Fprintf(w, "==== %s\n\n%s\n\n", strings.Join(t.files, "\n==== "), strings.TrimSpace(t.body))
	}
	return nil
}

// gather adds the texts of a module in a folder. Of Go itself, only that of the whole counts: its folders have what is not linked.
func gather(all []text, module, dir string) ([]text, error) {
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (d.Name() == "testdata" || d.Name()[0] == '.' || strings.HasPrefix(module, "go1")):
			return fs.SkipDir
		case !d.Type().IsRegular() || !legal.MatchString(d.Name()) || filepath.Ext(path) == ".go":
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found = true
		name, body := module+" "+filepath.ToSlash(strings.TrimPrefix(path, dir)[1:]), strings.ReplaceAll(string(b), "\r\n", "\n")
		i := slices.IndexFunc(all, func(t text) bool { return t.body == body })
		if i < 0 {
			i, all = len(all), append(all, text{body: body})
		}
		all[i].files = append(all[i].files, name)
		return nil
	})
	switch {
	case dir == "":
		return nil, fmt.Errorf("%s is not here: run go mod download", module)
	case err == nil && !found:
		fmt.Fprintf(os.Stderr, "licenses: %s has no licence in %s\n", module, dir)
	}
	return all, err
}

// run is what the go command prints.
func run(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args[:2], " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
