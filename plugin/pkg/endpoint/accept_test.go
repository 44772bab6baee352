package endpoint

import (
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// failing is a listener that accepts nothing at first.
type failing struct {
	net.Listener
	left int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.ENOMEM}
	}
	return f.Listener.Accept()
}

// What the system cannot accept for a moment does not end an endpoint.
func TestAcceptFails(t *testing.T) {
	out := logtest.Capture(t)
	s, err := newServer("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", says("well"))
	s.mux.Store(mux)
	s.listener = &failing{s.listener, 3}
	s.start()
	defer s.stop()
	r, err := http.Get("http://" + s.addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	out.Await(t, "accept tcp: cannot allocate memory")
}
