//go:build !linux

package conn

import (
	"net"

	"github.com/coredns/coredns/core/internal/service"
)

// light is nothing: all connections have goroutines.
type light struct{}

// readers are none.
type readers struct{}

func (l *Listener) serveLight(net.Listener, Handler) (served bool) { return false }

func (*readers) stop()                       {}
func (*readers) holds(*service.Service) bool { return false }
