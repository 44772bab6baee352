// Command generate makes manual pages and a site from the pages for people.
//
//	READMEs of plugins   ───┬──▶ page.go ──▶ man.go ──▶ dist/man/coredns-NAME.7
//	docs/*.md, man/*.md  ───┤                man.go ──▶ dist/man/coredns.1, corefile.5
//	                        └──────────────▶ site.go ─▶ dist/site/*.html
//
// It is a module of its own: what it needs is nothing that the server has. Start at main.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	root := flag.String("root", ".", "Folder of the sources")
	man := flag.String("man", "", "Write manual pages to this folder")
	site := flag.String("site", "", "Write the site to this folder")
	version := flag.String("version", "dev", "Version that the pages bear")
	date := flag.String("date", time.Now().UTC().Format(time.DateOnly), "Date that they bear")
	flag.Parse()
	book, err := read(*root)
	if err == nil && *man != "" {
		err = book.writeMan(*man, *version, *date)
	}
	if err == nil && *site != "" {
		err = book.writeSite(*site, *version)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
