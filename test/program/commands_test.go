package program

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A configuration is checked where there is no network at all, without opening anything: its addresses are nobody's there.
func TestValidateWithoutNetwork(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Corefile"), "tls://.:853 {\nbind 192.0.2.7\ntls good.pem good.key\nforward . tls://192.0.2.1 dns.example.org\n}\n"+
		"cluster.local {\nkubernetes {\nendpoint https://192.0.2.2\n}\nprometheus 192.0.2.7:9153\nhealth\ncontrol /no/such/folder/ctl.sock\n}\n"+
		"example.org {\nsecondary {\ntransfer from 192.0.2.3\n}\netcd {\nendpoint http://192.0.2.4:2379\n}\nreload\n}\n")
	prepareMistakes(t, folder)
	if err := exec.Command("unshare", "-rn", "true").Run(); err != nil {
		t.Skip("no network namespace can be made: run it as a user who may, with unshare of util-linux")
	}
	check := exec.Command("unshare", "-rn", os.Args[0])
	check.Dir, check.Env = folder, append(os.Environ(), asProgram+"=validate\n-json")
	out, err := check.Output()
	var got struct {
		File     string
		Valid    bool
		Warnings []struct{ Place, Text string }
	}
	if jsonErr := json.Unmarshal(out, &got); err != nil || jsonErr != nil || !got.Valid || got.File != "Corefile" {
		t.Errorf("%v, %v, %s", err, jsonErr, out)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 7 {
		t.Errorf("%v, it left %v", err, entries)
	}
}

// The commands take their flags anywhere, and refuse what they do not know.
func TestCommands(t *testing.T) {
	const untidy, tidy = ".:0   {\n# one\nwhoami  # two\n}\n", ".:0 {\n    # one\n    whoami # two\n}\n"
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Corefile"), untidy)
	write(t, filepath.Join(folder, "bad"), ". {\nforwad . 192.0.2.1\n}\n")
	for _, tc := range []struct {
		args   string
		status int
		out    string
		errs   string
	}{
		{"validate", 0, "Corefile is valid\n", ""},
		{"validate Corefile -strict", 0, "Corefile is valid\n", ""},
		{"validate bad", 1, "", "bad:2 - Error during parsing: Unknown directive 'forwad': did you mean 'forward'?\n"},
		{"validate bad -json", 1, `"place": "bad:2"`, ""},
		{"validate none", 1, "", "open none: no such file"},
		{"validate a b", 2, "", "one Corefile is expected"},
		{"validate -conf a b", 2, "", "named twice"},
		{"validate -no-such", 2, "", "flag provided but not defined: -no-such"},
		{"validate -h", 0, "", "Usage: coredns validate"},
		{"fmt", 0, tidy, ""},
		{"fmt -d", 1, "-whoami  # two\n", ""},
		{"fmt -w -d", 2, "", "exclude"},
		{"fmt none", 1, "", "open none"},
		{"explain", 2, "", "one name is expected"},
		{"explain -s no-such a", 1, "", "no server at no-such"},
		{"explain -once a..b", 1, "", "no domain name"},
		{"explain -once x.example.org TXT", 0, "whoami", ""},
		{"ctl -s no-such status", 1, "", "no server at no-such"},
		{"build ./none", 2, "", "either -source or -version tells where the sources of the server are"},
		{"build -source . after=acl", 2, "", `"after=acl": a plugin is [NAME:]PACKAGE[@VERSION]`},
		{"build -source . ./none", 1, "", ". is not the folder of module github.com/coredns/coredns"},
		{"completion bash", 0, "complete -F _coredns coredns", ""},
		{"completion csh", 2, "", "must be one of bash, zsh, fish"},
		{"no-such", 1, "", "extra command line arguments: [no-such]"},
		{"-quiet validate", 1, "", "extra command line arguments: [validate]"},
	} {
		out, errs, status := run(t, folder, "", strings.Fields(tc.args)...)
		if status != tc.status || !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) || tc.errs == "" && errs != "" {
			t.Errorf("%s: status %d, %q, %q", tc.args, status, out, errs)
		}
	}
	if _, _, status := run(t, folder, "", "fmt", "-w"); status != 0 {
		t.Errorf("status %d", status)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "Corefile")); err != nil || string(text) != tidy {
		t.Errorf("%v, written is %q", err, text)
	}
	if out, _, status := run(t, folder, "", "fmt", "-d"); status != 0 || out != "" {
		t.Errorf("status %d, %q", status, out)
	}
	if out, _, status := run(t, folder, untidy, "fmt", "-"); status != 0 || out != tidy {
		t.Errorf("status %d, %q", status, out)
	}
}

// What completion prints is a script that shells take.
func TestCompletion(t *testing.T) {
	script, _, _ := run(t, t.TempDir(), "", "completion", "bash")
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash: install it to have the script tried")
	}
	for line, want := range map[string]string{"val": "validate", "ctl up": "upstreams", "ctl cache fl": "flush", "ctl top nx": "nxdomain", "fmt -": "-w -d -conf", "exp": "explain"} {
		words := strings.Fields("coredns " + line)
		bash := exec.Command("bash", "-c", script+"\nCOMP_WORDS=("+strings.Join(words, " ")+"); COMP_CWORD="+fmt.Sprint(len(words)-1)+"; _coredns; echo \"${COMPREPLY[@]}\"")
		bash.Dir = t.TempDir()
		if out, err := bash.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %v, %q", line, err, out)
		}
	}
}
