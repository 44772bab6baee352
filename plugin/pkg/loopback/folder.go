package loopback

import "os"

// mostBelow is how long the path of a folder may be below which others have unix sockets: the paths of these may have
// 103 octets on some systems (unix(4) of BSD), 107 on Linux (unix(7)).
const mostBelow = 50

// lasting is of a test; package testing stays out of what imports this one.
type lasting interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}

// Folder is a folder that lasts as long as the test, for unix sockets. Its path is short, also where that of the
// folder for temporary files, or the name of the test, is long.
func Folder(t lasting) string {
	t.Helper()
	below := os.TempDir()
	if len(below) > mostBelow {
		below = "/tmp"
	}
	dir, err := os.MkdirTemp(below, "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
