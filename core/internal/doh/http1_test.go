package doh

import (
	"bufio"
	"fmt"
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

// A client that waits for 100 (Continue) and then sends far too much reads the response before the connection ends.
func TestTooMuchBehindContinue(t *testing.T) {
	s := serve(t, serviceFor(t, coretest.Echo), nil)
	for range 10 {
		c := coretest.Dial(t, s.addr)
		fmt.Fprintf(c, "POST /dns-query HTTP/1.1\r\nHost: example.org\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", 1<<20)
		r := bufio.NewReader(c)
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("%v, %v before the body", resp, err)
		}
		for n := range 1 << 8 {
			if _, err := c.Write(make([]byte, 1<<12)); err != nil {
				t.Fatalf("after %d octets: %v", n<<12, err)
			}
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Fatalf("%v, %v for a body of 1 MiB", resp, err)
		}
	}
}
