package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/test"
)

// root is the folder of the Makefile.
const root = "../.."

// A build at a tag is a release, and says the commit; others are on their way to one. All say what they are compatible with.
func TestVersion(t *testing.T) {
	if out, errs, status := run(t, t.TempDir(), "", "-version"); status != 0 || errs != "" ||
		!strings.HasPrefix(out, "CoreDNS-2.0.0-dev\n") || !strings.HasSuffix(out, "\ncompatible with CoreDNS 1.14.7\n") {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
	binary := filepath.Join(t.TempDir(), "server")
	build := makeAsTests(t, "-o", "check", "coredns", "BINARY="+binary, "GITCOMMIT=0123456789ab", "GITTAG=v2.0.0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(binary, "-version").Output()
	if got := string(out); err != nil || !strings.HasPrefix(got, "CoreDNS-2.0.0\n") || !strings.Contains(got, ", 0123456789ab\n") {
		t.Errorf("%v, %q", err, got)
	}
}

// makeAsTests is make with the flags that tests are built with, so that what was compiled for them is of use.
func makeAsTests(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("make", append(args, "BUILDOPTS=", "GOTAGS=", "CGO_ENABLED="+goEnv(t, "CGO_ENABLED"))...)
	c.Dir = root
	return c
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// The image has what the Makefile builds.
func TestImageIsBuiltByMake(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	file := string(text)
	if strings.Contains(file, "go build") || !strings.Contains(file, "\nRUN make coredns ") {
		t.Error("the Dockerfile has a recipe of its own")
	}
	make := exec.Command("make", "-n", "image", "GITCOMMIT=0123456789ab", "GITTAG=v2.0.0")
	make.Dir = root
	out, err := make.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, arg := range []string{"GITCOMMIT", "GITTAG"} {
		if !strings.Contains(string(out), "--build-arg "+arg+"=") || !strings.Contains(file, arg+"=\"$"+arg+"\"") {
			t.Errorf("%s does not get into the image", arg)
		}
	}
}

func TestMakeHelp(t *testing.T) {
	help := exec.Command("make", "help", "PORT=5353")
	help.Dir = root
	out, err := help.Output()
	if err != nil || strings.Contains(string(out), "$") || !strings.Contains(string(out), "on 5353\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Who builds with the tag registers the server type when he likes.
func TestManualRegistration(t *testing.T) {
	for tag, want := range map[string]string{"": "true\ntrue <nil> <nil>\n", "coredns_manual_registration": "false\ntrue <nil> <nil>\n"} {
		program := exec.Command("go", "run", "-tags", tag, "./testdata/manual")
		if out, err := program.Output(); err != nil || string(out) != want {
			t.Errorf("tag %q: %v, %q", tag, err, out)
		}
	}
}

// A build may leave out transports, each by a tag: their schemes are refused then, and the others are as ever.
func TestTransportTags(t *testing.T) {
	folder, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	schemes := []string{"dns", "tls", "grpc", "https", "https3", "quic"}
	for _, without := range [][]string{{"grpc", "https3"}, {"https", "quic"}} {
		tags, want := "", ""
		for _, s := range without {
			tags += " no" + s
		}
		for _, s := range schemes {
			if slices.Contains(without, s) {
				want += s + " " + s + "://:5300: this program was built without " + s + "\n"
			} else {
				want += s + " <nil>\n"
			}
		}
		binary := filepath.Join(folder, "transports")
		if out, err := exec.Command("go", "build", "-o", binary, "-tags", strings.TrimSpace(tags), "./testdata/transports").CombinedOutput(); err != nil {
			t.Fatalf("tags%s: %v\n%s", tags, err, out)
		}
		program := exec.Command(binary)
		program.Dir = folder
		if out, err := program.Output(); err != nil || string(out) != want {
			t.Errorf("tags%s: %v, got\n%swant\n%s", tags, err, out, want)
		}
	}
}
