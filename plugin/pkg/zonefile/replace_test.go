package zonefile

import (
	"errors"
	"os"
	"path/filepath"
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
