package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unreachable is what the go command says of modules that it cannot fetch.
var unreachable = regexp.MustCompile(`proxy\.golang\.org|dial tcp|module lookup disabled`)

// generated is the folder with what release.sh makes of the pages.
func generated(t *testing.T, what, folder string) string {
	t.Helper()
	dist, out, err := release(t, what)
	switch {
	case err != nil && unreachable.MatchString(out):
		t.Skip("go-md2man and goldmark cannot be fetched: go mod download -C man/generate with a network")
	case err != nil:
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dist, folder)
}

// Each plugin has a manual page, as have the program and the Corefile, and man has nothing to say against them.
func TestManuals(t *testing.T) {
	folder := generated(t, "manuals", "man")
	readmes, err := filepath.Glob(here("..", "plugin", "*", "README.md"))
	if err != nil || len(readmes) < 50 {
		t.Fatalf("%d READMEs, %v", len(readmes), err)
	}
	want := []string{"coredns.1", "corefile.5"}
	for _, r := range readmes {
		want = append(want, "coredns-"+strings.Replace(filepath.Base(filepath.Dir(r)), "metrics", "prometheus", 1)+".7")
	}
	got, _ := filepath.Glob(filepath.Join(folder, "*"))
	if len(got) != len(want) {
		t.Errorf("%d pages, not %d", len(got), len(want))
	}
	man, _ := exec.LookPath("man")
	for _, name := range want {
		text := read(t, filepath.Join(folder, name))
		title, _, _ := strings.Cut(text, "\n.SH ")
		if page, section, _ := strings.Cut(name, "."); !strings.Contains(title, ".TH "+strings.ToUpper(page)+" "+section+" ") {
			t.Errorf("%s begins with %q", name, title)
		}
		for _, needed := range []string{"\n.SH NAME\n", "\n.SH DESCRIPTION\n", "\n.SH SEE ALSO\n"} {
			if !strings.Contains(text, needed) {
				t.Errorf("%s: no %q", name, needed)
			}
		}
		if strings.Contains(text, "](") || strings.Contains(text, "|---") || strings.Contains(text, "<!--") {
			t.Errorf("%s: Markdown is left over", name)
		}
		if man == "" {
			continue
		}
		cmd := exec.Command(man, "--warnings=w", "-l", filepath.Join(folder, name))
		cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=100", "PAGER=cat")
		var warnings strings.Builder
		cmd.Stderr = &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("man %s: %v: %s", name, err, warnings.String())
		}
	}
	for name, says := range map[string]string{"coredns.1": "-log-format FORMAT", "corefile.5": "quotation mark", "coredns-cache.7": "serve_stale"} {
		if text := read(t, filepath.Join(folder, name)); !strings.Contains(strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "").Replace(text), says) {
			t.Errorf("%s does not tell of %s", name, says)
		}
	}
}

var (
	href  = regexp.MustCompile(`href="([^"]+)"`)
	id    = regexp.MustCompile(` id="([^"]+)"`)
	fetch = regexp.MustCompile(`<(?:script|link|iframe)\b|url\(|@import`)
	image = regexp.MustCompile(`<img src="([^"]*)"`)
)

// The pages of the site load nothing, and their links lead to pages and headings that are there.
func TestSite(t *testing.T) {
	folder := generated(t, "site", "site")
	files, _ := filepath.Glob(filepath.Join(folder, "*.html"))
	if len(files) < 75 {
		t.Fatalf("%d pages", len(files))
	}
	headings := map[string]map[string]bool{}
	for _, f := range files {
		ids := map[string]bool{}
		for _, m := range id.FindAllStringSubmatch(read(t, f), -1) {
			ids[m[1]] = true
		}
		headings[filepath.Base(f)] = ids
	}
	pictures := 0
	for _, f := range files {
		text := read(t, f)
		if what := fetch.FindString(text); what != "" {
			t.Errorf("%s loads something: %s", filepath.Base(f), what)
		}
		for _, m := range image.FindAllStringSubmatch(text, -1) {
			pictures++
			if picture := read(t, filepath.Join(folder, m[1])); fetch.MatchString(picture) || !strings.Contains(picture, "<svg") {
				t.Errorf("%s: the picture %s is not there, or loads something", filepath.Base(f), m[1])
			}
		}
		for _, m := range href.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			if to == "" {
				to = filepath.Base(f)
			}
			if headings[to] == nil || anchor != "" && !headings[to][anchor] {
				t.Errorf("%s: a link leads to %s, which is not there", filepath.Base(f), m[1])
			}
		}
	}
	if pictures == 0 {
		t.Error("no page has a picture")
	}
}
