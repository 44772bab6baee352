package doh

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
)

// TestIdleConnectionAtTheEnd stops a server without TLS, as it stands behind a proxy that ends TLS, while a client keeps
// its connection. net/http closes such a one twice: when it takes no more, and when its goroutine finds that.
func TestIdleConnectionAtTheEnd(t *testing.T) {
	s := serve(t, serviceFor(t, coretest.Echo), nil)
	c := coretest.Dial(t, s.addr)
	if _, err := io.WriteString(c, "GET /other HTTP/1.1\r\nHost: example.org\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection ended with %v", err)
	}
}
