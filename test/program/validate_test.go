package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whether a Corefile can be served is told by -validate, with what is doubtful in it, each with its line.
func TestValidate(t *testing.T) {
	missing := strings.Join([]string{
		"example.org example.net {",
		"    hosts no-hosts",
		"    file no-zone example.org",
		"    file no-other-zone example.net {",
		"        reload 5s",
		"    }",
		"    cache example.org 30",
		"}",
		"example.com {",
		"    auto {",
		"        directory no-folder",
		"    }",
		"    hosts folder",
		"}",
	}, "\n")
	warnings := []string{
		`Corefile:2 - Warning: plugin/hosts: File does not exist: no-hosts`,
		`Corefile:3 - Warning: plugin/file: Failed to open "open no-zone: no such file or directory": trying again in 1m0s`,
		`Corefile:4 - Warning: plugin/file: Failed to open "open no-other-zone: no such file or directory": trying again in 5s`,
		`Corefile:7 - Warning: plugin/cache: "30" is taken for a zone: a TTL stands before the zones`,
		`Corefile:11 - Warning: plugin/auto: Directory does not exist: no-folder`,
		`Corefile:13 - Warning: plugin/hosts: Hosts file "folder" is a directory`,
	}
	const none = "-" // no Corefile
	for _, tc := range []struct {
		name, corefile string
		args           []string
		want           []string // the lines on standard output, in any order
		refused        string   // what standard error holds
	}{
		{"good", ".:0 {\nwhoami\n}", nil, []string{"Corefile is valid"}, ""},
		{"good and strict", ".:0 {\nwhoami\n}", []string{"-strict"}, []string{"Corefile is valid"}, ""},
		{"as the built-in one", ".:53 {\nwhoami\nlog\n}\n", nil, []string{"Corefile is valid"}, ""},
		{"zone only", "example.org", nil, []string{"Corefile is valid"}, ""},
		{"none", none, nil, nil, "there is no Corefile here"},
		{"none of this name", none, []string{"-conf", "other"}, nil, "open other: no such file"},
		{"empty", "", nil, nil, "Corefile has no server block"},
		{"a comment", "# .:53 {\n# whoami\n# }\n", nil, nil, "Corefile has no server block"},
		{"a snippet", "(common) {\nwhoami\n}", nil, nil, "Corefile has no server block"},
		{"a mistake", ".:0 {\nerrors\ncache {\nsucces 10\n}\n}", nil, nil, "plugin/cache: Corefile:4 - Error during parsing: "},
		{"warnings", missing, nil, append([]string{"Corefile is valid, with warnings: 6"}, warnings...), ""},
		{"warnings and strict", missing, []string{"-strict"}, warnings, "Corefile is refused: warnings count with -strict, and it has 6"},
		{"a warning and a mistake", ".:0 {\nhosts gone\nfile x {\nno\n}\n}", nil,
			[]string{"Corefile:2 - Warning: plugin/hosts: File does not exist: gone"}, "Corefile:4 - Error during parsing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "folder"), 0o755); err != nil {
				t.Fatal(err)
			}
			if tc.corefile != none {
				if err := os.WriteFile(filepath.Join(folder, "Corefile"), []byte(tc.corefile), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, status := run(t, folder, "", append([]string{"-validate"}, tc.args...)...)
			expectLines(t, out, tc.want)
			if (status == 0) != (tc.refused == "") || !strings.Contains(errs, tc.refused) || tc.refused == "" && errs != "" {
				t.Errorf("status %d, %q", status, errs)
			}
		})
	}
}

func expectLines(t *testing.T, out string, want []string) {
	t.Helper()
	left := map[string]bool{}
	for _, w := range want {
		left[w] = true
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if !left[line] {
			t.Errorf("unexpected, or twice: %s", line)
		}
		delete(left, line)
	}
	for line := range left {
		t.Errorf("missing: %s", line)
	}
}

// What is piped in is checked as a file is.
func TestValidateStandardInput(t *testing.T) {
	for input, want := range map[string]int{".:53 {\nwhoami\nlog\n}\n": 0, "": 1} {
		if out, errs, status := run(t, t.TempDir(), input, "-conf", "stdin", "-validate"); status != want {
			t.Errorf("%q: status %d, %q, %q", input, status, out, errs)
		}
	}
}

func TestStrictWithoutValidate(t *testing.T) {
	if _, errs, status := run(t, t.TempDir(), "", "-strict"); status != 1 || !strings.Contains(errs, "-validate") {
		t.Errorf("status %d, %q", status, errs)
	}
}

// A port that is none is that of the flag where a key names no port.
func TestPortOfFlag(t *testing.T) {
	folder := t.TempDir()
	for corefile, want := range map[string]string{
		". {\nwhoami\n}\n":             "Corefile:1 - Error during parsing: address 99999: invalid port (a port is a number from 0 to 65535; this one is that of the flag -dns.port, as the key names none)\n",
		".:99999 {\nwhoami\n}\n":       "Corefile:1 - Error during parsing: address 99999: invalid port (a port is a number from 0 to 65535)\n",
		"tls://.:99999 {\nwhoami\n}\n": "Corefile:1 - Error during parsing: address 99999: invalid port (a port is a number from 0 to 65535)\n",
	} {
		write(t, filepath.Join(folder, "Corefile"), corefile)
		if _, errs, status := run(t, folder, "", "-p", "99999"); status != 1 || errs != want {
			t.Errorf("%q: status %d, %q", corefile, status, errs)
		}
	}
}
