package grpcdns

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/coredns/coredns/core/internal/service"
)

// arrivalTime is how long a client that has begun to connect has until its first call when the server stops. It may be
// far away, or slow: a TLS handshake and settings are exchanged before that.
const arrivalTime = time.Second

// When a client began to connect, beside the time.
const (
	called  = 0  // it has made a call since
	awaited = -1 // it has said nothing so far
)

// arrives reports whether the client connects, and is waited for.
func (c *admittedConn) arrives() bool {
	at := c.began.Load()
	return at > 0 && service.Now()-at < int64(arrivalTime)
}

// Read notes when the client begins.
func (c *admittedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.began.Load() == awaited {
		c.began.Store(service.Now())
	}
	return n, err
}

// come notes that the library has seen the connection.
func (c *admittedConn) come() {
	if !c.came.Swap(true) {
		c.coming.Add(-1)
	}
}

// framing has the library write to a connection by way of its frames.
type framing struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (f framing) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*admittedConn)
	if !ok {
		return f.TransportCredentials.ServerHandshake(raw)
	}
	c.began.Store(awaited)
	c.come()
	nc, info, err := f.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nc, info, err
	}
	above := &frames{Conn: nc}
	c.frames.Store(above)
	return above, info, nil
}

// awaitComing waits until nothing is accepted any more and the library has seen all that was: whatever it sees when it
// stops it closes.
func (t *Transport) awaitComing() {
	for end := time.Now().Add(service.DrainTime); t.coming.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
