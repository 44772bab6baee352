// Package custom makes builds of one's own: it reads plugin.cfg, generates what links its plugins into the program,
// fetches their modules, and builds servers with plugins from elsewhere.
//
//	plugin.cfg, COREDNS_PLUGINS ──▶ []Entry ──▶ Update ──▶ imports, directives, modules in go.mod
//	NAME:PACKAGE@VERSION after=NAME ──▶ []Plugin ──▶ Build ──▶ a program of its own, beside the sources
//
// No function changes anything when it fails. Start at Update and Build.
package custom

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Module is the module of the server.
const Module = "github.com/coredns/coredns"

// ListFile is the list of plugins of a build, in the folder of the module.
const ListFile = "plugin.cfg"

// Entry is a plugin of a build: the name of its directive, and its package, which is an import path or a folder below
// plugin/. Where is the place it comes from, such as plugin.cfg:17.
type Entry struct{ Name, Package, Where string }

// ReadList reads a list of plugins, one a line: name:package. What stands behind # is left out, and so are spaces
// around. An error names file and line.
func ReadList(r io.Reader, file string) (entries []Entry, err error) {
	l := list{places: map[string]string{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if err := l.add(line, fmt.Sprintf("%s:%d", file, n)); err != nil {
			return nil, err
		}
	}
	return l.entries, lines.Err()
}

// Extend is entries with more, as the environment variable COREDNS_PLUGINS has them: name:package, separated by
// commas.
func Extend(entries []Entry, more string) ([]Entry, error) {
	l := list{places: map[string]string{}}
	for _, e := range entries {
		l.places[e.Name] = e.Where
	}
	l.entries = append(l.entries, entries...)
	for line := range strings.SplitSeq(more, ",") {
		if err := l.add(line, "COREDNS_PLUGINS"); err != nil {
			return nil, err
		}
	}
	return l.entries, nil
}

// list is entries that are being read.
type list struct {
	entries []Entry
	places  map[string]string // by name
}

func (l *list) add(line, where string) error {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil
	}
	name, pkg, ok := strings.Cut(line, ":")
	name, pkg = strings.TrimSpace(name), strings.TrimSpace(pkg)
	if !ok || name == "" || pkg == "" || strings.ContainsAny(name, " \t\"") || strings.ContainsAny(pkg, ": \t\"") {
		return fmt.Errorf("%s: %q is not of the form name:package", where, line)
	}
	if first, ok := l.places[name]; ok {
		return fmt.Errorf("%s: Duplicate entry %q: it stands in %s, too", where, name, first)
	}
	l.places[name] = where
	l.entries = append(l.entries, Entry{name, pkg, where})
	return nil
}
