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
		args = append(args, e.Package)
	}
	if _, err := goTool(root, nil, args...); err == nil {
		return nil
	}
	for _, e := range foreign {
		if _, err := goTool(root, nil, "list", "-deps", e.Package); err == nil {
			continue
		}
		if _, err := goTool(root, nil, "get", e.Package); err != nil {
			return fmt.Errorf("%s: %s: %w", e.Where, e.Name, err)
		}
	}
	return nil
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
