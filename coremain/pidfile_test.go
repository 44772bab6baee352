//go:build !windows

package coremain

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that ends takes its file with its id away, but not that of a process which has taken its place.
func TestPidFileAtTheEnd(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		for _, other := range []bool{false, true} {
			corefile := filepath.Join(t.TempDir(), "Corefile")
			if err := os.WriteFile(corefile, []byte("example.org:0"), 0o644); err != nil {
				t.Fatal(err)
			}
			program, out := begin(t, corefile)
			lines := bufio.NewReader(out)
			for line := ""; !strings.HasPrefix(line, "compatible with"); { // the last of a start
				var err error
				if line, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			go io.Copy(io.Discard, lines)
			pid := corefile + ".pid"
			if text, err := os.ReadFile(pid); err != nil || len(text) < 2 {
				t.Errorf("there is no file: %v", err)
			}
			if other {
				if err := os.WriteFile(pid, []byte("1\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			program.Process.Signal(sig)
			ended := time.AfterFunc(30*time.Second, func() { program.Process.Kill() })
			program.Wait()
			ended.Stop()
			if _, err := os.Stat(pid); errors.Is(err, fs.ErrNotExist) == other {
				t.Errorf("%v, of another process %t: %v", sig, other, err)
			}
		}
	}
}
