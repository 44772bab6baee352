package cookie

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// A pipe in the place of the secrets, to which nobody writes, does not hold the end of the server.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(path, []byte("e5e973e5a6b2a43f48e7dc849e37bfcf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	stamptest.Pipe(t, path)
	w := &watcher{file: f, every: time.Millisecond}
	w.start()
	time.Sleep(50 * time.Millisecond)
	stamptest.Prompt(t, func() {
		w.stop()
	})
	if f.err == "" {
		t.Error("nobody is told")
	}
}
