package coretest

import (
	"net"
	"testing"
)

// Pausing is a client's connection whose second write, and those after it, wait for a word: in a TLS handshake, that is
// what the client has to say in its middle.
type Pausing struct {
	net.Conn
	// Paused is closed when the second write waits, and closing GoOn lets it go on.
	Paused, GoOn chan struct{}
	writes       int
}

// DialPausing connects to addr, until the test ends.
func DialPausing(t *testing.T, addr string) *Pausing {
	t.Helper()
	return &Pausing{Conn: Dial(t, addr), Paused: make(chan struct{}), GoOn: make(chan struct{})}
}

// Write implements net.Conn. One goroutine at a time may call it.
func (p *Pausing) Write(b []byte) (int, error) {
	if p.writes++; p.writes == 2 {
		close(p.Paused)
		<-p.GoOn
	}
	return p.Conn.Write(b)
}
