package endpoint

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/reuseport"

	"github.com/coredns/caddy"
)

// unixScheme begins the addresses of unix sockets.
const unixScheme = "unix://"

// listen opens the socket of an address.
func listen(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, unixScheme); ok {
		return listenUnix(path)
	}
	return reuseport.Listen("tcp", addr)
}

// listenUnix opens a unix socket that only the process's own user may use. It is made in a folder of its own and moved
// there, so that it never has other rights, and takes the place of what a process that has ended, or that this one
// upgrades, left there. It is an error if another process answers there.
func listenUnix(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&os.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists, and is no socket", path)
	case err == nil && !caddy.IsUpgrade():
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			conn.Close()
			return nil, fmt.Errorf("another process answers at %s", path)
		}
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".new") // which nobody else can enter
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	beside := filepath.Join(folder, "s")
	ln, err := net.Listen("unix", beside)
	if err != nil {
		return nil, err
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	var file os.FileInfo
	if err = os.Chmod(beside, 0o600); err == nil {
		if file, err = os.Lstat(beside); err == nil {
			err = os.Rename(beside, path)
		}
	}
	if err != nil {
		ln.Close()
		return nil, err
	}
	return Owner(ln.(*net.UnixListener), file, path), nil
}

// Owner is a unix socket that takes its file, which is at path, away at its end, unless another one's is there by then:
// that of the process that this one hands over to, say.
func Owner(ln *net.UnixListener, file os.FileInfo, path string) net.Listener {
	ln.SetUnlinkOnClose(false)
	return &unixListener{ln, path, file}
}

// unixListener is what Owner says.
type unixListener struct {
	*net.UnixListener
	path string
	file os.FileInfo // as it was made
}

// lost reports whether the file has gone.
func (u *unixListener) lost() bool {
	_, err := os.Lstat(u.path)
	return os.IsNotExist(err)
}

// Close ends the socket.
func (u *unixListener) Close() error {
	if now, err := os.Lstat(u.path); err == nil && os.SameFile(now, u.file) {
		os.Remove(u.path)
	}
	return u.UnixListener.Close()
}
