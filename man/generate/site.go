package main

import (
	"bytes"
	_ "embed"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed site.html
var layout string

// shown is what the layout has of a page.
type shown struct {
	Title, Version string
	Body           template.HTML
	Docs, Plugins  []entry
}

// entry is a line of the list of pages.
type entry struct {
	Name, File string
	Here       bool
}

// file is the page's name in the site: the folder has all of them, so links need no way up.
func (p page) file() string {
	if strings.HasPrefix(p.path, "plugin/") {
		return "plugin-" + p.title + ".html"
	}
	name := strings.ToLower(strings.TrimSuffix(path.Base(p.path), ".md"))
	if p.path == "README.md" {
		name = "index"
	}
	return name + ".html"
}

// writeSite writes the site to a folder.
func (b *book) writeSite(folder, version string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	main, err := pagesAt(b.root, "README.md")
	if err != nil {
		return err
	}
	layout, err := template.New("site").Parse(layout)
	if err != nil {
		return err
	}
	all := append(append(main, b.docs...), b.plugins...)
	files := map[string]string{} // by the path of the source
	for _, p := range all {
		files[p.path] = p.file()
	}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	for _, p := range all {
		source := []byte(p.text)
		tree := md.Parser().Parse(text.NewReader(source))
		relink(tree, p.path, files)
		if err := b.copyPictures(tree, p.path, folder); err != nil {
			return err
		}
		var body, out bytes.Buffer
		if err := md.Renderer().Render(&body, source, tree); err != nil {
			return err
		}
		s := shown{Title: p.title, Version: version, Body: template.HTML(body.String())}
		for _, d := range append(main, b.docs...) {
			s.Docs = append(s.Docs, entry{d.title, d.file(), d.path == p.path})
		}
		for _, d := range b.plugins {
			s.Plugins = append(s.Plugins, entry{d.title, d.file(), d.path == p.path})
		}
		if err := layout.Execute(&out, s); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, p.file()), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// relink makes links between sources those between pages. One that leads to a source which is no page becomes its text.
func relink(tree ast.Node, from string, files map[string]string) {
	var lost []*ast.Link
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(link.Destination)
		if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
			return ast.WalkContinue, nil
		}
		to, anchor, _ := strings.Cut(to, "#")
		if anchor != "" {
			anchor = "#" + anchor
		}
		if f := files[path.Join(path.Dir(from), to)]; f != "" {
			link.Destination = []byte(f + anchor)
		} else {
			lost = append(lost, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range lost {
		for c := link.FirstChild(); c != nil; c = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, c)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
}

// copyPictures puts the pictures of a page beside it, so that the site needs nothing from elsewhere.
func (b *book) copyPictures(tree ast.Node, from, folder string) error {
	return ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		picture, ok := n.(*ast.Image)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		source := path.Join(path.Dir(from), string(picture.Destination))
		name := path.Base(source)
		data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(source)))
		if err != nil {
			return ast.WalkStop, err
		}
		picture.Destination = []byte(name)
		return ast.WalkContinue, os.WriteFile(filepath.Join(folder, name), data, 0o644)
	})
}
