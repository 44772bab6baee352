//go:build unix

package coremain

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFormatWritesBack: a Corefile that is written anew keeps its owner and its rights, and a link to it stays one. A file that is called
// Corefile.new is somebody's.
func TestFormatWritesBack(t *testing.T) {
	dir := t.TempDir()
	path, link, other := filepath.Join(dir, "Corefile"), filepath.Join(dir, "link"), filepath.Join(dir, "Corefile.new")
	for name, text := range map[string]string{path: ".:53 {\nwhoami\n}\n", other: "mine"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 12345, 12346
	}
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("Corefile", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if err := replaceFile(name, []byte("the new text")); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{path: "the new text", link: "the new text", other: "mine"} {
		if is, err := os.ReadFile(name); err != nil || string(is) != want {
			t.Errorf("%s has %q (%v), want %q", name, is, err, want)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is one no more: %v (%v)", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("its rights are others: %v (%v)", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(uid) || info.Sys().(*syscall.Stat_t).Gid != uint32(gid) {
		t.Errorf("it is somebody else's: %+v (%v)", info.Sys(), err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 3 {
		t.Errorf("%d files are in the folder", len(all))
	}
}
