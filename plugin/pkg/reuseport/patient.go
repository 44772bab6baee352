package reuseport

import (
	"errors"
	"net"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// Patient is l, for a server that gives up when connections cannot be accepted, as those of libraries do for most
// errors: for want of memory, or of a firewall, though that may pass. What cannot be accepted waits, and one line a
// minute tells of that; the server gets no error but the listener's end.
func Patient(l net.Listener) net.Listener { return &patient{Listener: l} }

type patient struct {
	net.Listener
	troubled log.Seldom
}

const acceptPause = 5 * time.Millisecond

// Accept implements net.Listener.
func (p *patient) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return c, err
		}
		if p.troubled.May() {
			log.Warningf("Connections to %s wait until they can be accepted: %v", p.Addr(), err)
		}
		time.Sleep(acceptPause)
	}
}
