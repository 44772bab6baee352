package test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

// readmes are the README files of all plugins that this build has.
func readmes(t *testing.T) (files []string) {
	t.Helper()
	all, err := filepath.Glob("../plugin/*/README.md")
	if err != nil || len(all) < 20 {
		t.Fatalf("READMEs: %d, %v", len(all), err)
	}
	for _, f := range all {
		abs, err := filepath.Abs(f)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, abs)
	}
	return files
}

func TestReadmeSections(t *testing.T) {
	for _, file := range readmes(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		if first, _, _ := bytes.Cut(text, []byte("\n")); string(first) != "# "+strings.Replace(name, "metrics", "prometheus", 1) && string(first) != "# "+name {
			t.Errorf("%s begins with %q", file, first)
		}
		at := 0
		for _, section := range []string{"## Name", "## Description", "## Syntax", "## Examples"} {
			i := bytes.Index(text[at:], []byte("\n"+section+"\n"))
			if i < 0 {
				t.Errorf("%s: no section %q in its place", file, section)
				continue
			}
			at += i
		}
	}
}

var corefileBlock = regexp.MustCompile("(?s)```corefile\n(.*?)```")

// needsMore are plugins that do not start without the API of a provider, or without keys.
var needsMore = map[string]bool{"azure": true, "clouddns": true, "route53": true, "sign": true}

// TestReadmeExamples starts a server with each Corefile that a README shows. Ports that it does not name
// are any port, and files that it names lie in testdata/readme.
func TestReadmeExamples(t *testing.T) {
	port := dnsserver.Port
	dnsserver.Port = "0"
	defer func() { dnsserver.Port = port }()
	started := 0
	for _, file := range append(readmes(t), mainReadme(t)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := corefileBlock.FindAllSubmatch(text, -1)
		if len(blocks) == 0 && !needsMore[filepath.Base(filepath.Dir(file))] {
			t.Errorf("%s has no example", file)
		}
		t.Chdir("testdata/readme")
		for _, b := range blocks {
			i, err := CoreDNSServer(string(b[1]))
			if err != nil {
				t.Errorf("%s: %v\n%s", file, err, b[1])
				continue
			}
			started++
			(&running{i}).end()
		}
		t.Chdir(filepath.Join("..", ".."))
	}
	t.Logf("%d examples started", started)
}

func mainReadme(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExamples starts what lies in examples/.
func TestExamples(t *testing.T) {
	port := dnsserver.Port
	dnsserver.Port = "0"
	defer func() { dnsserver.Port = port }()
	t.Chdir("..") // as they say
	out := captureLog(t)
	files, err := filepath.Glob("examples/Corefile*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		i, err := caddy.Start(caddy.CaddyfileInput{Contents: text, Filepath: f, ServerTypeName: "dns"})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		(&running{i}).end()
		if missing := regexp.MustCompile(`(?i).*(no such file|does not exist).*`).FindString(out.String()); missing != "" {
			t.Errorf("%s: %s", f, missing)
		}
	}
}

// TestReadmeSyntax compares what READMEs say of a directive with the tables that it is read by.
func TestReadmeSyntax(t *testing.T) {
	docs := corefile.Docs()
	if len(docs) < 20 {
		t.Fatalf("only %d directives have a table", len(docs))
	}
	for _, d := range docs {
		file := filepath.Join("..", "plugin", d.Name, "README.md")
		if d.Name == "prometheus" {
			file = filepath.Join("..", "plugin", "metrics", "README.md")
		}
		got, err := corefile.ReadmeSyntax(file)
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		if got != d.Syntax {
			t.Errorf("%s says\n%s\nits table says\n%s", file, got, d.Syntax)
		}
	}
	names := dnsserver.Directives
	for _, d := range docs {
		if !slices.Contains(names, d.Name) {
			t.Errorf("%s has a table but is no directive", d.Name)
		}
	}
}
