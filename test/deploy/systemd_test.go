// Package deploy checks what deploy/ holds for operators: units, packages, releases, rules and dashboards.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin"

	"github.com/coredns/caddy"
)

// here is the path of a file of deploy/.
func here(name ...string) string {
	return filepath.Join(append([]string{"..", "..", "deploy"}, name...)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tool is the path of a program, or skips the test.
func tool(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: apt-get install %s", name, from)
	}
	return path
}

// unit copies the unit into a folder, with this program in place of the server, as systemd-analyze looks whether it is there.
func unit(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(read(t, here("systemd", "coredns.service")), "/usr/bin/coredns", self)
	if !strings.Contains(text, "ExecStart="+self+" -conf /etc/coredns/Corefile\n") {
		t.Errorf("the unit does not start /usr/bin/coredns with /etc/coredns/Corefile")
	}
	path := filepath.Join(t.TempDir(), "coredns.service")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// systemd says nothing about the unit: it warns of each key and value that it does not know.
func TestUnit(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "systemd")
	service := unit(t)
	socket := filepath.Join(filepath.Dir(service), "coredns.socket")
	if err := os.WriteFile(socket, []byte(read(t, here("systemd", "coredns.socket"))), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", service, socket).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "coredns.s") { // other units of the machine are not ours
			t.Errorf("%s", line)
		}
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// What the unit may do is as little as systemd's own measure asks of a service that is safe: 20 of 100 are left.
func TestUnitIsHardened(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "systemd")
	out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold=20", unit(t)).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// The Corefile of the packages can be served, and answers none but its own machine.
func TestPackagedCorefile(t *testing.T) {
	path := here("packages", "Corefile")
	text := read(t, path)
	if !strings.Contains(text, "bind 127.0.0.1\n") {
		t.Errorf("%s listens on all addresses", path)
	}
	text = strings.Replace(text, "/etc/resolv.conf\n", "192.0.2.1\n", 1)
	if err := dnsserver.Validate(caddy.CaddyfileInput{Contents: []byte(text), Filepath: path, ServerTypeName: "dns"}); err != nil {
		t.Error(err)
	}
}
