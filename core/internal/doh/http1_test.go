package doh

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/nonblock/acktest"
	"github.com/coredns/coredns/test/clients"
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

// A connection without a request is closed when the server stops, though another one is still at work: a request that
// came later would be dropped.
func TestUnaskedConnectionAtTheEnd(t *testing.T) {
	for how, config := range map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t, "http/1.1")} {
		g := coretest.NewGate(t)
		of := serviceFor(t, g)
		of.Read = time.Minute // else that ends it
		s := serve(t, of, config)
		dialled := func() net.Conn {
			c := coretest.Dial(t, s.addr)
			if config == nil {
				return c
			}
			secure := tls.Client(c, clients.Trusting)
			if err := secure.Handshake(); err != nil {
				t.Fatal(err)
			}
			return secure
		}
		unasked, busy := dialled(), dialled()
		fmt.Fprintf(busy, "GET /dns-query?dns=%s HTTP/1.1\r\nHost: example.org\r\n\r\n",
			base64.RawURLEncoding.EncodeToString(coretest.Packed(t, coretest.Query("slow."))))
		g.Holds(t, 1)
		ended := coretest.Stopping(t, s.end)
		unasked.SetReadDeadline(time.Now().Add(4 * time.Second)) // net/http closes it after five
		if _, err := unasked.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: the connection without a request: %v", how, err)
		}
		g.Open()
		if resp, err := http.ReadResponse(bufio.NewReader(busy), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: the one that is at work: %v, %v", how, resp, err)
		}
		ended()
	}
}

// A client that gathers small writes waits with the body, and with the rest of it, until what came before it is
// acknowledged.
func TestHTTP1HoldsBack(t *testing.T) {
	for how, config := range map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t, "http/1.1")} {
		t.Run(how, func(t *testing.T) {
			c := coretest.Dial(t, serve(t, serviceFor(t, coretest.Echo), config).addr)
			c.(*net.TCPConn).SetNoDelay(false)
			if config != nil {
				c = tls.Client(c, clients.Trusting)
			}
			r, q := bufio.NewReader(c), coretest.Packed(t, coretest.Query("www."))
			post := func() {
				fmt.Fprintf(c, "POST /dns-query HTTP/1.1\r\nHost: example.org\r\nContent-Length: %d\r\n\r\n", len(q))
				c.Write(q[:5])
				c.Write(q[5:])
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
				io.Copy(io.Discard, resp.Body)
			}
			for range 5 { // so that the system takes it for a conversation
				post()
			}
			acktest.Prompt(t, nil, post)
		})
	}
}

// The time in which a client has to take a response begins with that, also where the answer was long in coming.
func TestLateAnswer(t *testing.T) {
	for how, config := range map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t, "http/1.1")} {
		of := serviceFor(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			time.Sleep(600 * time.Millisecond)
			return coretest.Echo(ctx, w, r)
		}))
		of.Write = 300 * time.Millisecond
		s := serve(t, of, config)
		c := coretest.Dial(t, s.addr)
		if config != nil {
			c = tls.Client(c, clients.Trusting)
		}
		r := bufio.NewReader(c)
		for range 2 {
			q := coretest.Packed(t, coretest.Query("www."))
			fmt.Fprintf(c, "POST /dns-query HTTP/1.1\r\nHost: example.org\r\nContent-Length: %d\r\n\r\n%s", len(q), q)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %v", how, resp, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

// A client that does not take responses in time is counted.
func TestWriteTime(t *testing.T) {
	of := serviceFor(t, lengthy)
	of.Write = 300 * time.Millisecond
	c := coretest.Dial(t, serve(t, of, nil).addr)
	q := coretest.Packed(t, coretest.Query("long."))
	ask := fmt.Sprintf("POST /dns-query HTTP/1.1\r\nHost: example.org\r\nContent-Length: %d\r\n\r\n%s", len(q), q)
	go func() { // until the server takes no more, either
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, ask)
		}
	}()
	eventually.Holds(t, "it is counted", func() bool { return coretest.Limited(of, "write_time") == 1 })
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

// A body that cannot be read ends its connection: where it ends is not known, and what is left of it is no request
// (RFC 9112 §9.3). Behind a proxy that request would be answered in the place of somebody else's.
func TestUnreadableBody(t *testing.T) {
	const behind = "GET /behind HTTP/1.1\r\nHost: example.org\r\n\r\n"
	for _, tc := range []struct{ name, head, late string }{
		{name: "chunk of no length", head: "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + behind},
		{name: "chunk without its end", head: "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd" + behind},
		{name: "too late", head: "Content-Length: 1000\r\n\r\nabcd", late: behind},
	} {
		t.Run(tc.name, func(t *testing.T) {
			service := serviceFor(t, coretest.Echo)
			service.Read = 300 * time.Millisecond
			s := serve(t, service, nil)
			c := coretest.Dial(t, s.addr)
			fmt.Fprintf(c, "POST /dns-query HTTP/1.1\r\nHost: example.org\r\n%s", tc.head)
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
				t.Errorf("%v, %v; want 400 with Connection: close", resp, err)
			}
			io.Copy(io.Discard, resp.Body)
			io.WriteString(c, tc.late)
			if resp, err := http.ReadResponse(r, nil); err == nil {
				t.Errorf("status %d for what is left of a body", resp.StatusCode)
			}
		})
	}
}
