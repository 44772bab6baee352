package root

import (
	"bytes"
	golog "log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ input, root, err, warning string }{
		{"root " + dir, dir, "", ""},
		{"root " + dir + "\nroot .", ".", "", ""},
		{"root " + dir + "/none", dir + "/none", "", "[WARNING] plugin/root: Root path does not exist: " + dir + "/none"},
		{"root", "", "Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after 'root'", ""},
		{"root a b", "", "Wrong argument count", ""},
		{"root " + file + "/below", "", "Testfile:1 - Error during parsing: unable to access root path '" + file + "/below': ", ""},
		{"root . {\nx\n}", "", "unknown property 'x'", ""},
	} {
		var out bytes.Buffer
		golog.SetOutput(&out)
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		golog.SetOutput(os.Stderr)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.HasPrefix(err.Error(), "plugin/root: ") {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || dnsserver.GetConfig(c).Root != tc.root {
			t.Errorf("%q: got %q, %v", tc.input, dnsserver.GetConfig(c).Root, err)
		}
		if got := out.String(); !strings.Contains(got, tc.warning) || tc.warning == "" && got != "" {
			t.Errorf("%q: logged %q, want %q", tc.input, got, tc.warning)
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}
