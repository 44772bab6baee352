package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// writeMan writes all manual pages to a folder.
func (b *book) writeMan(folder, version, date string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	write := func(name, section, text string) error {
		title := fmt.Sprintf("%% %s %s %q %q %q\n\n", strings.ToUpper(name), section, date, "coredns "+version, "DNS server")
		return os.WriteFile(filepath.Join(folder, name+"."+section), md2man.Render([]byte(title+forMan(text))), 0o644)
	}
	for name, section := range map[string]string{"coredns": "1", "corefile": "5"} {
		text, err := b.frame(name + "." + section + ".md")
		if err != nil {
			return err
		}
		if err := write(name, section, text); err != nil {
			return err
		}
	}
	for _, p := range b.plugins {
		_, text, _ := strings.Cut(p.text, "\n")
		text = strings.Replace(text, "\n*"+p.title+"* - ", "\ncoredns-"+p.title+" - ", 1)
		text = strings.TrimRight(text, "\n") + "\n\n## See also\n\n**coredns**(1), **corefile**(5)\n"
		if err := write("coredns-"+p.title, "7", text); err != nil {
			return err
		}
	}
	return nil
}

var (
	headline = regexp.MustCompile(`^##(#*) (.*)$`)
	linked   = regexp.MustCompile(`\[([^]]+)\]\(([^)]+)\)`)
	readme   = regexp.MustCompile(`plugin/([a-z0-9_]+)/README\.md`)
)

// forMan is a page as a manual has it: sections in capitals, links as text, tables of two columns as lists of terms. Code stays.
func forMan(text string) string {
	var out, table []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
			line = "```" // the language is nothing to a manual
		}
		if !code && strings.HasPrefix(line, "|") {
			table = append(table, unlinked(line))
			continue
		}
		out = append(out, terms(table)...)
		table = nil
		switch m := headline.FindStringSubmatch(line); {
		case code:
		case m != nil && m[1] == "":
			line = "## " + strings.ToUpper(m[2])
		case m != nil:
		case !strings.HasPrefix(line, "    "):
			line = unlinked(line)
		}
		out = append(out, line)
	}
	return strings.Join(append(out, terms(table)...), "\n")
}

// unlinked is a line with the text of its links, and the addresses of those that lead away.
func unlinked(line string) string {
	return linked.ReplaceAllStringFunc(line, func(link string) string {
		m := linked.FindStringSubmatch(link)
		switch plugin := readme.FindStringSubmatch(m[2]); {
		case plugin != nil:
			return "**coredns-" + plugin[1] + "**(7)"
		case strings.Contains(m[2], "://"):
			return m[1] + " (" + m[2] + ")"
		}
		return m[1]
	})
}

// terms is a table as a list: what stands in the first cell of a row, and below it the others, with their heads if there are several. The
// table's own rows are lines that begin with a bar.
func terms(table []string) (out []string) {
	if len(table) < 3 {
		return table
	}
	heads := cells(table[0])
	out = append(out, "")
	for _, row := range table[2:] {
		c := cells(row)
		term := c[0]
		if term == "" {
			term = "-"
		}
		var says []string
		for i, text := range c[1:] {
			if len(c) > 2 && i+1 < len(heads) && heads[i+1] != "" && text != "" {
				text = "*" + heads[i+1] + "*: " + text
			}
			if text != "" {
				says = append(says, text)
			}
		}
		out = append(out, term, ": "+strings.Join(says, "; "), "")
	}
	return out
}

// cells is a row's cells; `\|` in one is a bar.
func cells(row string) []string {
	all := strings.Split(strings.ReplaceAll(strings.Trim(strings.TrimSpace(row), "|"), `\|`, "\x00"), "|")
	for i, c := range all {
		all[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
	}
	return all
}
