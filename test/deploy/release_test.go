package deploy

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// standIn is a go command whose "build" copies a small program for the server, so that nothing large is built. What else it is told, such
// as to run nfpm, Go does.
const standIn = `#!/bin/sh
if [ "$1" != build ]; then exec go "$@"; fi
while [ "$1" != -o ]; do shift; done
mkdir -p "$(dirname "$2")" && cp "$STAND_IN" "$2"
`

// program builds the small one. It has the build information of one of this module.
var program = sync.OnceValues(func() (path string, err error) {
	folder, err := os.MkdirTemp("", "deploy")
	if err != nil {
		return "", err
	}
	built = folder
	path = filepath.Join(folder, "coredns")
	out, err := exec.Command("go", "build", "-o", path, "../../deploy/sbom").CombinedOutput()
	if err != nil {
		return path, fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

var built string // the folder of program; written by it

func TestMain(m *testing.M) {
	status := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(status)
}

// release runs deploy/release.sh into a folder, with variables over those of a Makefile, and returns the folder and what it printed.
func release(t *testing.T, what string, vars ...string) (dist, out string, err error) {
	t.Helper()
	tool(t, "bash", "bash")
	if runtime.GOOS != "linux" {
		t.Skip("release.sh needs GNU tar: run it on Linux")
	}
	stand, err := program()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	dist = filepath.Join(folder, "dist")
	goStand := filepath.Join(folder, "go")
	if err := os.WriteFile(goStand, []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(here("release.sh"), what)
	cmd.Env = append(os.Environ(), append([]string{"GO=" + goStand, "STAND_IN=" + stand, "DIST=" + dist, "VERSION=2.0.0-rc.1",
		"MAINTAINER=Someone <someone@example.org>"}, vars...)...)
	b, err := cmd.CombinedOutput()
	return dist, string(b), err
}

// sums compares SHA256SUMS with the files that it names, and returns their names.
func sums(t *testing.T, dist string) (names []string) {
	t.Helper()
	for line := range strings.Lines(read(t, filepath.Join(dist, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := sha256.Sum256([]byte(read(t, filepath.Join(dist, name)))); hex.EncodeToString(got[:]) != sum {
			t.Errorf("the sum of %s is %x, not %s", name, got, sum)
		}
		names = append(names, name)
	}
	return names
}

// member is the file of an archive that has just this one.
func member(t *testing.T, archive string) (h *tar.Header, body []byte) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(read(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	if h, err = r.Next(); err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if next, err := r.Next(); err != io.EOF {
		t.Errorf("%s holds more: %v, %v", archive, next, err)
	}
	return h, body
}

// A release has an archive, a bill of materials and licences for each target, and sums of all.
func TestRelease(t *testing.T) {
	dist, out, err := release(t, "binaries", "TARGETS=linux/arm64 windows/amd64")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []string{"coredns_2.0.0-rc.1_linux_arm64.cdx.json", "coredns_2.0.0-rc.1_linux_arm64.licenses.txt", "coredns_2.0.0-rc.1_linux_arm64.tgz",
		"coredns_2.0.0-rc.1_windows_amd64.cdx.json", "coredns_2.0.0-rc.1_windows_amd64.licenses.txt", "coredns_2.0.0-rc.1_windows_amd64.tgz"}
	if got := sums(t, dist); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	stand, _ := program()
	for name, file := range map[string]string{want[2]: "coredns", want[5]: "coredns.exe"} {
		h, body := member(t, filepath.Join(dist, name))
		if h.Name != file || h.Mode != 0o755 || h.Uid != 0 || h.Uname != "" || string(body) != read(t, stand) {
			t.Errorf("%s holds %+v with %d octets", name, h, len(body))
		}
	}
	bill := read(t, filepath.Join(dist, want[0]))
	if !strings.Contains(bill, `"bomFormat": "CycloneDX"`) || !strings.Contains(bill, `"purl": "pkg:golang/github.com/coredns/coredns@2.0.0-rc.1"`) {
		t.Errorf("the bill of materials is %s", bill)
	}
	if licenses := read(t, filepath.Join(dist, want[1])); !strings.HasPrefix(licenses, "==== "+runtime.Version()+" LICENSE\n") {
		t.Errorf("the licences are %s", licenses)
	}
}

// The licences of a program are those of Go and of each of its modules, with their notices, and no module goes without.
func TestLicenses(t *testing.T) {
	folder := t.TempDir()
	tool, server := filepath.Join(folder, "licenses"), filepath.Join(folder, "uses")
	for path, source := range map[string]string{tool: "../../deploy/licenses", server: "../../test/embed"} {
		if out, err := exec.Command("go", "build", "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	got := run(t, tool, server)
	info, err := buildinfo.ReadFile(server)
	if err != nil || len(info.Deps) == 0 {
		t.Fatalf("%v, %v", info, err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(got, "==== "+m.Path+"@"+m.Version+" ") {
			t.Errorf("nothing of %s", m.Path)
		}
	}
	for _, want := range []string{"==== " + info.GoVersion + " LICENSE\n", " NOTICE\n"} {
		if strings.Count(got, want) == 0 {
			t.Errorf("no %q", want)
		}
	}
	if out, err := exec.Command(tool, "release_test.go").CombinedOutput(); err == nil || !strings.Contains(string(out), "licenses: what release_test.go was built from: ") {
		t.Errorf("of a file that is no program: %v, %s", err, out)
	}
}

// A module without a licence, as a plugin of one's own may be, is named, and keeps no image from being built.
func TestModuleWithoutLicense(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module uses\n\ngo 1.25\n\nrequire example.org/own v0.0.0\n\nreplace example.org/own => ./own\n", "own/go.mod": "module example.org/own\n\ngo 1.25\n",
		"own/own.go": "package own\n\nconst Word = \"own\"\n", "uses.go": "package main\n\nimport \"example.org/own\"\n\nfunc main() { println(own.Word) }\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tool := filepath.Join(folder, "licenses")
	if out, err := exec.Command("go", "build", "-o", tool, "../../deploy/licenses").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"go", "build", "-o", "program", "."}, {tool, "program"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if args[0] == tool && (!strings.Contains(string(out), "licenses: example.org/own@v0.0.0 has no licence in ") || !strings.Contains(string(out), " LICENSE\n")) {
			t.Errorf("%s", out)
		}
	}
}

// A release has all systems that releases of CoreDNS 1.14.7 have.
func TestTargets(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, here("../Makefile")), "\nTARGETS ")
	text, _, end := strings.Cut(rest, "\nPACKAGES ")
	if !ok || !end {
		t.Fatal("no TARGETS in the Makefile")
	}
	targets := strings.Fields(text)
	for _, want := range strings.Fields("darwin/amd64 darwin/arm64 windows/amd64 linux/amd64 linux/arm linux/arm64 linux/mips64le " +
		"linux/ppc64le linux/s390x linux/mips linux/riscv64 linux/loong64") {
		if !slices.Contains(targets, want) {
			t.Errorf("no release for %s", want)
		}
	}
}

// Without a version nothing is built, and a wrong word is answered by what may stand there.
func TestReleaseRefuses(t *testing.T) {
	for what, want := range map[string]string{"binaries": "the version is not set", "everything": "release.sh binaries|packages"} {
		version := "VERSION="
		if what == "everything" {
			version = "VERSION=1.0.0"
		}
		if _, out, err := release(t, what, version, "TARGETS=linux/amd64"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s", what, err, out)
		}
	}
}

// The package has the server, its unit and an example, in the modes that they need; dpkg asks before it overwrites the Corefile.
func TestPackages(t *testing.T) {
	dpkg := tool(t, "dpkg-deb", "dpkg")
	dist, out, err := release(t, "packages", "PACKAGES=arm64")
	if err != nil && unreachable.MatchString(out) {
		t.Skip("nfpm cannot be fetched: go install github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 with a network")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names := sums(t, dist)
	if want := []string{"coredns-2.0.0~rc.1-1.aarch64.rpm", "coredns_2.0.0~rc.1_arm64.deb"}; !slices.Equal(names, want) {
		t.Fatalf("got %v, want %v", names, want)
	}
	deb := filepath.Join(dist, names[1])
	contents := run(t, dpkg, "-c", deb)
	for _, want := range []string{
		`-rwxr-xr-x root/root .* \./usr/bin/coredns\n`, `-rw-r--r-- root/root .* \./etc/coredns/Corefile\n`,
		`-rw-r--r-- root/root .* \./usr/lib/systemd/system/coredns\.service\n`,
		`-rw-r--r-- root/root .* \./usr/lib/systemd/system/coredns\.socket\n`, `-rw-r--r-- root/root .* \./usr/lib/sysusers\.d/coredns\.conf\n`,
		`-rw-r--r-- root/root .* \./usr/lib/tmpfiles\.d/coredns\.conf\n`, `-rw-r--r-- root/root .* \./usr/share/doc/coredns/copyright\n`,
		`-rw-r--r-- root/root .* \./usr/share/doc/coredns/START\.md\n`, `-rw-r--r-- root/root .* \./usr/share/doc/coredns/licenses\.txt\n`, `-rw-r--r-- root/root .* \./usr/share/man/man1/coredns\.1\.gz\n`,
		`-rw-r--r-- root/root .* \./usr/share/man/man5/corefile\.5\.gz\n`, `-rw-r--r-- root/root .* \./usr/share/man/man7/coredns-cache\.7\.gz\n`,
	} {
		if !regexp.MustCompile(want).MatchString(contents) {
			t.Errorf("no %s in\n%s", want, contents)
		}
	}
	control := run(t, dpkg, "-I", deb, "control")
	for _, want := range []string{"Package: coredns\n", "Version: 2.0.0~rc.1\n", "Architecture: arm64\n", "Maintainer: Someone <someone@example.org>\n"} {
		if !strings.Contains(control, want) {
			t.Errorf("no %q in\n%s", want, control)
		}
	}
	if got := run(t, dpkg, "-I", deb, "conffiles"); got != "/etc/coredns/Corefile\n" {
		t.Errorf("files that an upgrade keeps: %q", got)
	}
	for script, file := range map[string]string{"postinst": "postinstall.sh", "prerm": "preremove.sh", "postrm": "postremove.sh"} {
		if run(t, dpkg, "-I", deb, script) != read(t, here("packages", file)) {
			t.Errorf("%s is not %s", script, file)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}
