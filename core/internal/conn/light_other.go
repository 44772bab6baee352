//go:build !linux

package conn

import "net"

// light is nothing: all connections have goroutines.
type light struct{}

// readers are none.
type readers struct{}

func (l *Listener) serveLight(net.Listener, Handler) (served bool) { return false }

func (*readers) stop()                       {}
func (*readers) holds(*service.Service) bool { return false }
