package dnstap

import (
	"errors"
	"net"
	"os"

	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// Who takes over listens while the one before does, too: a process that is begun by SIGUSR2, or, in a reload, a hub with
// other certificates. Anybody else who listens there is a mistake.

// listen listens. takesOver says that another one of ours may listen there still.
func listen(network, addr string, takesOver bool) (net.Listener, error) {
	if network == "unix" {
		return listenUnix(addr, takesOver)
	}
	if !takesOver {
		l, err := net.Listen(network, addr) // which fails if anybody listens there
		if err != nil {
			return nil, err
		}
		return reuseport.Share(l, addr), nil
	}
	return reuseport.Listen(network, addr)
}

// listenUnix listens on a socket in the file system. One that nobody listens on is taken away before, and so is that of who is
// taken over from.
func listenUnix(path string, takesOver bool) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		info, serr := os.Lstat(path)
		if serr != nil || info.Mode()&os.ModeSocket == 0 {
			return nil, err
		}
		if !takesOver {
			if conn, derr := net.Dial("unix", path); derr == nil {
				conn.Close()
				return nil, err // somebody does
			}
		}
		if rerr := os.Remove(path); rerr != nil {
			return nil, errors.Join(err, rerr)
		}
		if l, err = net.Listen("unix", path); err != nil {
			return nil, err
		}
	}
	file, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return endpoint.Owner(l.(*net.UnixListener), file, path), nil
}
