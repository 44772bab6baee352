package custom

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// fetch fetches the modules of entries that root's go.mod does not have.
func fetch(root string, entries []Entry) error {
	foreign := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return strings.HasPrefix(e.Package, Module+"/") })
	if len(foreign) == 0 {
		return nil
	}
	args := []string{"list", "-deps"}
	for _, e := range foreign {
		if strings.HasPrefix(e.Package, "-") { // the go command would take it for an option
			return e.noPackage("")
		}
		args = append(args, e.Package)
	}
	if _, err := goTool(root, nil, args...); err == nil {
		return nil
	}
	for _, e := range foreign {
		if _, err := goTool(root, nil, "list", "-deps", e.Package); err == nil {
			continue
		}
		_, err := goTool(root, nil, "get", e.Package)
		if err != nil { // it has asked for versions, also of a module that go.mod has in a folder
			if _, other := goTool(root, nil, "list", "-mod=mod", "-deps", e.Package); other == nil {
				continue
			}
			if first, _, _ := strings.Cut(e.Package, "/"); !strings.Contains(strings.TrimLeft(first, "."), ".") {
				return e.noPackage(": " + err.Error())
			}
			return fmt.Errorf("%s: %s: %w", e.Where, e.Name, err)
		}
	}
	return nil
}

// noPackage is the error of an entry whose package is nowhere, and cannot be an import path that is fetched: those begin
// with a domain name.
func (e *Entry) noPackage(why string) error {
	return fmt.Errorf("%s: %s: %q is neither a folder below plugin/ nor an import path such as example.org/%[2]s%s", e.Where, e.Name, e.Package, why)
}

// goTool runs the go command in a folder, with more in its environment, and returns what it prints. Its error has what
// the command said.
func goTool(dir string, env []string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out.String()), nil
}
