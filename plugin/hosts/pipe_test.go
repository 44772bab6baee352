package hosts

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// TestPipe: a pipe in the place of the file, to which nobody writes, does not hold the end of the server.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("192.0.2.1 a.example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &Hostsfile{path: path, reload: time.Millisecond}
	h.readHosts()
	stamptest.Pipe(t, path)
	stop := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { close(stop) })
	stamptest.Prompt(t, func() { h.watch(stop) })
	if got := h.LookupStaticHostV4("a.example.org."); len(got) != 1 {
		t.Errorf("what was read is gone: %v", got)
	}
}
