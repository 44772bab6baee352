package endpoint

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

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
	s.listener = loopback.Failing(s.listener, 3, syscall.ENOMEM)
	s.start()
	defer s.stop()
	r, err := http.Get("http://" + s.addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	out.Await(t, "accept tcp: cannot allocate memory")
}
