package loadbalance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// A pipe in the place of the weights, to which nobody writes, does not hold who looks at them; what was known stays.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, []byte("www.example.org\n192.0.2.1 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &weightFile{path: path, every: time.Hour}
	if _, err := f.load(); err != nil {
		t.Fatal(err)
	}
	known := f.current.Load()
	stamptest.Pipe(t, path)
	stamptest.Prompt(t, func() {
		if _, err := f.load(); err == nil || f.current.Load() != known {
			t.Errorf("%v", err)
		}
	})
}
