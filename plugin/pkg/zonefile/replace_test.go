package zonefile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	odd := errors.New("odd")
	say := func(text string, err error) func(*os.File) error {
		return func(f *os.File) error {
			f.WriteString(text)
			return err
		}
	}
	for _, tc := range []struct {
		write  func(*os.File) error
		finish func(string) error
		err    error
		want   string
	}{
		{say("one", nil), nil, nil, "one"},
		{say("two", odd), nil, odd, "one"},
		{say("three", nil), func(string) error { return odd }, odd, "one"},
		{say("four", nil), func(name string) error { return os.WriteFile(name, []byte("five"), 0o600) }, nil, "five"},
	} {
		if err := Replace(path, "new-*", tc.write, tc.finish); !errors.Is(err, tc.err) {
			t.Errorf("got error %v, want %v", err, tc.err)
		}
		if got, _ := os.ReadFile(path); string(got) != tc.want {
			t.Errorf("the file has %q, want %q", got, tc.want)
		}
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("%d files are in the folder", len(all))
		}
	}
}

// TestReplaceSyncsFolder: the new name is on the disk, too, or that is told, unless the system cannot do it at all.
func TestReplaceSyncsFolder(t *testing.T) {
	was := syncDir
	defer func() { syncDir = was }()
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	write := func(f *os.File) error {
		_, err := f.WriteString("one")
		return err
	}
	for says, want := range map[error]error{nil: nil, syscall.EIO: syscall.EIO, syscall.EINVAL: nil, syscall.EPERM: nil, syscall.ENOTSUP: nil} {
		os.Remove(path)
		synced := ""
		syncDir = func(f *os.File) error {
			if is, err := os.ReadFile(path); err == nil && string(is) == "one" {
				synced = f.Name()
			}
			return says
		}
		if err := Replace(path, "new-*", write, nil); !errors.Is(err, want) || synced != dir {
			t.Errorf("where it says %v: %v; %q was synced with the file in it", says, err, synced)
		}
	}
}
