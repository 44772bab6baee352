package loopback

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderHasRoomForSockets(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	var dir string
	t.Run("a test", func(t *testing.T) {
		dir = Folder(t)
		l, err := net.Listen("unix", filepath.Join(dir, strings.Repeat("s", 40)))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is there after the test: %v", dir, err)
	}
}
