package custom

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Plugin is one that a build has beside those of plugin.cfg.
type Plugin struct {
	Name    string // of its directive; empty: what its package registers
	Package string // an import path, or a folder: one that begins with . or /
	Version string // of its module, as go get takes it; empty: the newest
	After   string // the directive that it stands behind, in the order of the chain
	Before  string // or before; both empty: it is the last
}

// local reports whether the package is a folder.
func (p *Plugin) local() bool {
	return filepath.IsAbs(p.Package) || p.Package == "." || strings.HasPrefix(p.Package, "./") || strings.HasPrefix(p.Package, "../")
}

// errPlugin says what a plugin is written as.
var errPlugin = errors.New("a plugin is [NAME:]PACKAGE[@VERSION] [after=NAME | before=NAME]")

// ParsePlugins reads plugins, separated by spaces or commas, each as errPlugin says.
func ParsePlugins(text string) (all []Plugin, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			p, err := parsePlugin(word)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
			continue
		}
		if len(all) == 0 || value == "" {
			return nil, fmt.Errorf("%q: %w", word, errPlugin)
		}
		switch p := &all[len(all)-1]; {
		case p.After != "" || p.Before != "":
			return nil, fmt.Errorf("%q: %s has a place already: %w", word, p.Package, errPlugin)
		case key == "after":
			p.After = value
		case key == "before":
			p.Before = value
		default:
			return nil, fmt.Errorf("%q: %w", word, errPlugin)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no plugin: %w", errPlugin)
	}
	return all, nil
}

func parsePlugin(word string) (p Plugin, err error) {
	p.Package = word
	if name, rest, ok := strings.Cut(word, ":"); ok {
		if p.Name, p.Package = name, rest; name == "" {
			return p, fmt.Errorf("%q: %w", word, errPlugin)
		}
	}
	if pkg, version, ok := strings.Cut(p.Package, "@"); ok {
		if p.Package, p.Version = pkg, version; version == "" || p.local() {
			return p, fmt.Errorf("%q: a folder has no version, and a version is not empty: %w", word, errPlugin)
		}
	}
	if p.Package == "" || !p.local() && path.Clean(p.Package) != p.Package {
		return p, fmt.Errorf("%q: %w", word, errPlugin)
	}
	return p, nil
}

// insert is order with the plugins in their places. Plugins with one place stand in the order in which they are given.
func insert(order []string, plugins []Plugin) ([]string, error) {
	order = slices.Clone(order)
	behind := map[string]int{} // how many stand behind a directive because of after
	for _, p := range plugins {
		if slices.Contains(order, p.Name) {
			return nil, fmt.Errorf("%s: the build has a plugin %s already", p.Package, p.Name)
		}
		at := len(order)
		if mark := p.After + p.Before; mark != "" {
			if at = slices.Index(order, mark); at < 0 {
				return nil, fmt.Errorf("%s: there is no plugin %s that it could stand beside", p.Name, mark)
			}
			if p.After != "" {
				behind[mark]++
				at += behind[mark]
			}
		}
		order = slices.Insert(order, at, p.Name)
	}
	return order, nil
}
