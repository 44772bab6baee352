// Package program runs the server's program: its flags, what it prints, and how it ends.
//
// The test binary is the program, so that nothing has to be built beforehand.
package program

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/coredns/coredns/core/plugin"
	"github.com/coredns/coredns/coremain"
)

// asProgram is the variable of the environment that makes the test binary the program, with its arguments one a line.
const asProgram = "PROGRAM_TEST_ARGUMENTS"

// returned is the status of a program of which Run has returned.
const returned = 99

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(asProgram); ok {
		os.Unsetenv(asProgram)
		os.Args = append(os.Args[:1], strings.Split(args, "\n")...)
		coremain.Run()
		os.Exit(returned)
	}
	os.Exit(m.Run())
}

// run runs the program in folder until it ends, with input on its standard input.
func run(t *testing.T, folder, input string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // one that serves, though it should not, ends then
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0])
	program.WaitDelay = time.Second
	program.Dir = folder
	program.Env = append(os.Environ(), asProgram+"="+strings.Join(args, "\n"))
	program.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	program.Stdout, program.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := program.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), program.ProcessState.ExitCode()
}

// Flags that are questions end the process: what a program has behind Run is for a server that has ended.
func TestRunDoesNotReturn(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Corefile"), []byte(".:0 {\n\twhoami\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-version", "-plugins", "-validate"} {
		if stdout, stderr, status := run(t, folder, "", flag); status != 0 || stdout == "" {
			t.Errorf("%s: status %d, %q, %q", flag, status, stdout, stderr)
		}
	}
}
