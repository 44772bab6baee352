package custom

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Options are those of a build.
type Options struct {
	Source string    // the folder of this module; empty: Version is fetched as a module
	Main   string    // the version of the module, as go get takes it
	List   string    // what stands in for plugin.cfg, in the folder of this module; empty: plugin.cfg
	Output string    // the file that is written
	Args   []string  // more arguments of go build, such as -tags
	Log    io.Writer // what is done; nil for silence
}

// Build builds the server with plugins, in a folder of its own: neither Source nor anything else but Output changes.
func Build(plugins []Plugin, o Options) error {
	work, err := os.MkdirTemp("", "coredns-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := &builder{Options: o, dir: work}
	if b.Log == nil {
		b.Log = io.Discard
	}
	output, err := filepath.Abs(o.Output)
	if err != nil {
		return err
	}
	plugins = slices.Clone(plugins)
	if err := b.begin(); err != nil {
		return err
	}
	for i := range plugins {
		if err := b.add(&plugins[i]); err != nil {
			return err
		}
	}
	if err := b.main(plugins); err != nil {
		return err
	}
	binary := filepath.Join(work, "program")
	fmt.Fprintf(b.Log, "building %s\n", o.Output)
	if _, err := b.goTool(append(append([]string{"build", "-o", binary}, o.Args...), ".")...); err != nil {
		return err
	}
	return move(binary, output)
}

// builder is a build under way.
type builder struct {
	Options
	dir    string
	server string // the folder of this module
}

// goTool runs the go command in the folder of the build. It may add to its go.mod, and to no other file that is meant to
// stand in for that; other flags are those of the user.
func (b *builder) goTool(args ...string) (string, error) {
	const alone = "GOWORK=off"
	flags, err := goTool(b.dir, []string{alone}, "env", "GOFLAGS")
	if err != nil {
		return "", err
	}
	return goTool(b.dir, []string{"GOFLAGS=" + flags + " -mod=mod -modfile=", alone}, args...)
}

// begin makes a module that requires this one.
func (b *builder) begin() (err error) {
	if err := os.WriteFile(filepath.Join(b.dir, "go.mod"), []byte("module coredns.custom\n"), 0o644); err != nil {
		return err
	}
	if b.Source == "" {
		fmt.Fprintf(b.Log, "fetching %s %s\n", Module, b.Main)
		if _, err := b.goTool("get", Module+"@"+b.Main); err != nil {
			return err
		}
		b.server, err = b.goTool("list", "-m", "-f", "{{.Dir}}", Module)
		return err
	}
	if b.server, err = filepath.Abs(b.Source); err != nil {
		return err
	}
	if name, err := moduleAt(b.server); err != nil || name != Module {
		return fmt.Errorf("%s is not the folder of module %s", b.Source, Module)
	}
	if sums, err := os.ReadFile(filepath.Join(b.server, "go.sum")); err == nil {
		if err := os.WriteFile(filepath.Join(b.dir, "go.sum"), sums, 0o644); err != nil {
			return err
		}
	}
	return b.replace(Module, b.server)
}

// replace requires a module that lies in a folder.
func (b *builder) replace(module, dir string) error {
	_, err := b.goTool("mod", "edit", "-require="+module+"@v0.0.0-00010101000000-000000000000", "-replace="+module+"="+dir)
	return err
}

// add makes a plugin's package one that can be imported, and finds out its name.
func (b *builder) add(p *Plugin) (err error) {
	switch {
	case p.local():
		err = b.addFolder(p)
	default:
		version := p.Version
		if version == "" {
			version = "latest"
		}
		fmt.Fprintf(b.Log, "fetching %s@%s\n", p.Package, version)
		_, err = b.goTool("get", p.Package+"@"+version)
	}
	if err != nil {
		return err
	}
	dir, err := b.goTool("list", "-f", "{{.Dir}}", p.Package)
	if err != nil {
		return err
	}
	names, err := registers(dir)
	switch {
	case err != nil:
		return err
	case p.Name == "" && len(names) == 1:
		p.Name = names[0]
	case p.Name == "" && len(names) == 0:
		return fmt.Errorf("%s: the name that its package registers is not to be seen: NAME:%s tells it", p.Package, p.Package)
	case p.Name == "":
		return fmt.Errorf("%s: its package registers %q: NAME:%s tells which", p.Package, names, p.Package)
	case len(names) > 0 && !slices.Contains(names, p.Name):
		return fmt.Errorf("%s: its package registers %q, not %s", p.Package, names, p.Name)
	}
	return nil
}

// addFolder makes a folder a package: of this module, of the module that it lies in, or of the build itself.
func (b *builder) addFolder(p *Plugin) error {
	dir, err := filepath.Abs(p.Package)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder", p.Package)
	}
	for root := dir; ; root = filepath.Dir(root) {
		if module, err := moduleAt(root); err == nil {
			below, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			p.Package = path.Join(module, filepath.ToSlash(below))
			if module == Module {
				return nil
			}
			return b.replace(module, root)
		}
		if root == filepath.Dir(root) {
			break
		}
	}
	name := filepath.Base(dir)
	for n := 2; ; n++ { // two folders may have one name, but not one package
		if _, err := os.Lstat(filepath.Join(b.dir, name)); err != nil {
			break
		}
		name = fmt.Sprintf("%s-%d", filepath.Base(dir), n)
	}
	p.Package = "coredns.custom/" + name
	return os.CopyFS(filepath.Join(b.dir, name), os.DirFS(dir))
}

// main writes the program.
func (b *builder) main(plugins []Plugin) error {
	entries, err := b.list()
	if err != nil {
		return err
	}
	var order []string
	for _, e := range entries {
		order = append(order, e.Name)
	}
	if order, err = insert(order, plugins); err != nil {
		return err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "package main\n\nimport (\n%q\n%q\n\n", Module+"/core/dnsserver", Module+"/coremain")
	if b.List == "" {
		fmt.Fprintf(&s, "_ %q\n", Module+"/core/plugin")
	} else {
		s.WriteString(importLines(entries))
	}
	for _, p := range plugins {
		fmt.Fprintf(&s, "_ %q\n", p.Package)
		if p.After+p.Before == "" {
			fmt.Fprintf(b.Log, "%s stands last in the chain: after=NAME or before=NAME puts it elsewhere\n", p.Name)
		}
	}
	fmt.Fprintf(&s, ")\n\nfunc main() {\ndnsserver.Directives = []string{\n")
	for _, name := range order {
		fmt.Fprintf(&s, "%q,\n", name)
	}
	s.WriteString("}\ncoremain.Run()\n}\n")
	_, err = writeFile(filepath.Join(b.dir, "main.go"), s.String())
	return err
}

// list is the plugins of this module that the program has.
func (b *builder) list() ([]Entry, error) {
	name := cmp.Or(b.List, ListFile)
	f, err := os.Open(filepath.Join(b.server, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := ReadList(f, name)
	if err != nil {
		return nil, err
	}
	resolve(b.server, entries)
	return entries, nil
}

// move puts the file from in the place of to, also on another file system. A program that runs goes on with the old one.
func move(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".coredns-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := errors.Join(out.Chmod(0o755), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
