package test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/loopback"

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

// sections are those of a README, in their order. Options are there if the directive takes arguments or options, metrics if the plugin has
// some (test/house compares the names), notes if there is more to say.
var sections = []string{"Name", "Description", "Syntax", "Options", "Metrics", "Examples", "Notes"}

func TestReadmeSections(t *testing.T) {
	for _, file := range readmes(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := directiveOf(file)
		if first, _, _ := strings.Cut(string(text), "\n"); first != "# "+name {
			t.Errorf("%s begins with %q", file, first)
		}
		if !regexp.MustCompile(`(?s)\n## Name\n\n\*` + name + `\* - [^\n]+\.\n\n## `).Match(text) {
			t.Errorf("%s: the name is not told as \"*%s* - what it does.\"", file, name)
		}
		var got []string
		for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			got = append(got, m[1])
		}
		for _, needed := range []string{"Name", "Description", "Syntax", "Examples"} {
			if !slices.Contains(got, needed) {
				t.Errorf("%s: no section %q", file, needed)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b string) int { return slices.Index(sections, a) - slices.Index(sections, b) }) ||
			slices.ContainsFunc(got, func(s string) bool { return !slices.Contains(sections, s) }) {
			t.Errorf("%s has the sections %v, not some of %v in this order", file, got, sections)
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^## (.*)$`)
	fenced  = regexp.MustCompile("(?sm)^```.*?^```$")
)

// directiveOf is the directive that a README is of.
func directiveOf(file string) string {
	if name := filepath.Base(filepath.Dir(file)); name != "metrics" {
		return name
	}
	return "prometheus"
}

var corefileBlock = regexp.MustCompile("(?s)```corefile\n(.*?)```")

// needsMore are plugins that do not start without the API of a provider, keys, or a network interface.
var needsMore = map[string]bool{"azure": true, "clouddns": true, "route53": true, "sign": true, "xdp": true}

// TestReadmeExamples starts a server with each Corefile that a README shows. Ports that it does not name
// are any port, and files that it names lie in testdata/readme. An example may not start,
// which is told, if its port is another program's, or one for which the system wants more rights, or for want of IPv6.
func TestReadmeExamples(t *testing.T) {
	port := dnsserver.Port
	dnsserver.Port = "0"
	defer func() { dnsserver.Port = port }()
	files := append(readmes(t), pages(t)...)
	elsewhere := takenPorts(t, files)
	started := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := corefileBlock.FindAllSubmatch(text, -1)
		if len(blocks) == 0 && !needsMore[filepath.Base(filepath.Dir(file))] && filepath.Base(file) == "README.md" {
			t.Errorf("%s has no example", file)
		}
		t.Chdir("testdata/readme")
		for _, b := range blocks {
			i, err := CoreDNSServer(string(b[1]))
			if err != nil {
				if m := noPort.FindStringSubmatch(err.Error()); m != nil && elsewhere[m[1]] {
					t.Logf("not started, as port %s cannot be had: end who has it, or run this as root: %s\n%s", m[1], file, b[1])
					continue
				}
				if noIPv6.MatchString(err.Error()) && !loopback.HasIPv6() {
					t.Logf("not started, as ::1 is not there: sysctl net.ipv6.conf.lo.disable_ipv6=0: %s\n%s", file, b[1])
					continue
				}
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

var (
	noPort    = regexp.MustCompile(`:(\d+): bind: (?:address already in use|permission denied)`)
	noIPv6    = regexp.MustCompile(`cannot assign requested address|all addresses are excepted`)
	namesPort = regexp.MustCompile(`:(\d+)\b`)
)

// takenPorts are those of the examples in files, or that their plugins have by default, which cannot be had here: others have them, or rights are missing. It is called
// before a server of the test has any.
func takenPorts(t *testing.T, files []string) map[string]bool {
	t.Helper()
	ports := map[string]bool{"8080": true, "8181": true, "9153": true, "6053": true, "853": true, "443": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range corefileBlock.FindAllSubmatch(text, -1) {
			for _, m := range namesPort.FindAllSubmatch(b[1], -1) {
				ports[string(m[1])] = true
			}
		}
	}
	for port := range ports {
		stream, err := net.Listen("tcp", ":"+port)
		if err == nil {
			stream.Close()
			var datagrams net.PacketConn
			if datagrams, err = net.ListenPacket("udp", ":"+port); err == nil {
				datagrams.Close()
			}
		}
		ports[port] = errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES)
	}
	return ports
}

// pages are the main README and what is in docs.
func pages(t *testing.T) (files []string) {
	t.Helper()
	all, err := filepath.Glob("../docs/*.md")
	if err != nil || len(all) < 12 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	for _, f := range append(all, "../README.md") {
		abs, err := filepath.Abs(f)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, abs)
	}
	return files
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

// optionTerm is what a line of a list in Options is about: what stands in backquotes or in bold before the first other word.
var (
	optionTerm = regexp.MustCompile("(?m)^\\* ((?:(?:`[^`]+`|\\*\\*[^*]+\\*\\*)(?:, | and |, and | or | )?)+)")
	term       = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")
)

// TestReadmeOptions compares the section Options with the tables that directives are read by: each option and each argument of the line
// stands there, and no line of a list is about an option that there is not.
func TestReadmeOptions(t *testing.T) {
	looked := 0
	for _, d := range corefile.Docs() {
		file := filepath.Join("..", "plugin", strings.Replace(d.Name, "prometheus", "metrics", 1), "README.md")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		_, options, _ := strings.Cut(string(text), "\n## Options\n")
		options, _, _ = strings.Cut(options, "\n## ")
		words := regexp.MustCompile(`[A-Za-z0-9_]+`).FindAllString(d.Syntax, -1)
		line, _, _ := strings.Cut(strings.TrimPrefix(d.Syntax, d.Name), "\n")
		for _, o := range d.Options {
			line += " " + o.Name // a word, or the form of lines that begin with no option
		}
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(line, -1) {
			looked++
			told := regexp.MustCompile("\\b" + word + "\\b")
			if word == strings.ToLower(word) {
				told = regexp.MustCompile("`[^`\n]*\\b" + word + "\\b[^`\n]*`")
			}
			if !told.MatchString(options) {
				t.Errorf("%s: Options do not tell what %s is", file, word)
			}
		}
		main, _, _ := strings.Cut(options, "\n### ")
		for _, m := range optionTerm.FindAllStringSubmatch(main, -1) {
			for _, w := range term.FindAllStringSubmatch(m[1], -1) {
				first := regexp.MustCompile(`[A-Za-z0-9_]+`).FindString(w[1] + w[2])
				if first != "" && !slices.Contains(words, first) {
					t.Errorf("%s: Options tell of %q, which is not in the syntax", file, w[1]+w[2])
				}
			}
		}
	}
	if looked < 200 {
		t.Errorf("only %d options were looked at", looked)
	}
}
