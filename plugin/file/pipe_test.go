package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/stamp/stamptest"
)

// TestPipe: a pipe in the place of a file, to which nobody writes, holds neither other zones nor the end of the server.
func TestPipe(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	path, part := filepath.Join(dir, "db"), filepath.Join(dir, "hosts")
	settle(t, part, "a A 192.0.2.1\n")
	settle(t, path, fmt.Sprintf(exampleOrg, 1)+"$INCLUDE hosts\n")
	for _, byMtime := range []bool{false, true} {
		for _, piped := range []string{path, part} {
			z := NewZone("example.org", path)
			z.ReloadByMtime = byMtime
			if err := z.Load(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(piped, piped+".kept"); err != nil {
				t.Fatal(err)
			}
			stamptest.Pipe(t, piped)
			settle(t, path+".next", fmt.Sprintf(exampleOrg, 2)+"$INCLUDE hosts\n")
			if piped == part {
				os.Rename(path, path+".kept")
				os.Rename(path+".next", path)
			}
			stamptest.Prompt(t, func() {
				if changed := z.Refresh(t.Context()); changed || z.Current() == nil || z.Current().Serial() != 1 {
					t.Errorf("changed %v", changed)
				}
			})
			os.Rename(path+".kept", path)
			os.Rename(part+".kept", part)
		}
	}
	if n := strings.Count(out.String(), "a pipe is read"); n != 4 {
		t.Errorf("told %d times: %s", n, out)
	}
}
