//go:build !windows

package coremain

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asProgram is the variable of the environment that makes the test binary the program, with its value as Corefile.
const asProgram = "COREMAIN_TEST_COREFILE"

func TestMain(m *testing.M) {
	if corefile := os.Getenv(asProgram); corefile != "" {
		os.Args = []string{os.Args[0], "-conf", corefile}
		Run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Who has seen the first line of output may send signals: they are handled, and do not just end the process.
func TestSignalsRightAfterTheStart(t *testing.T) {
	corefile := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(corefile, []byte("example.org:0"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), asProgram+"="+corefile, "GOMAXPROCS=1")
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		first, err := lines.ReadString('\n')
		if err != nil || first != "example.org.:0\n" {
			t.Errorf("the program begins with %q, %v", first, err)
		}
		program.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(lines)
		if err := program.Wait(); err != nil || !strings.Contains(string(rest), "[INFO] SIGTERM: Shutting down servers then terminating") {
			t.Fatalf("the program ended with %v, and wrote %q", err, rest)
		}
	}
}
