package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// http1Upstream is a Proxy for an upstream of HTTP/1.1 that writes what answer returns for the n-th request of a
// connection, whose query is q, and closes the connection after "".
func http1Upstream(t *testing.T, answer func(n int, r *http.Request, q []byte) string) (p *Proxy, conns *atomic.Int64) {
	t.Helper()
	conns = new(atomic.Int64)
	return overTLS(t, "http/1.1", func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for n := 1; ; n++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if n == 1 {
				conns.Add(1)
			}
			a := answer(n, req, queryOf(req))
			if io.WriteString(c, a); a == "" {
				return
			}
		}
	}), conns
}

func ok(q []byte, fields ...string) string {
	b := replyTo(q)
	return "HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(len(b)) + "\r\n" + strings.Join(append(fields, ""), "\r\n") + "\r\n" + string(b)
}

// What an upstream of HTTP/1.1 may do, and what becomes of three queries, one after the other.
func TestHTTP1Upstreams(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(n int, r *http.Request, q []byte) string
		conns  int64
		err    string // "" for replies
	}{
		"keeps connections":  {func(_ int, _ *http.Request, q []byte) string { return ok(q) }, 1, ""},
		"closes connections": {func(_ int, _ *http.Request, q []byte) string { return ok(q, "Connection: close") }, 3, ""},
		"closes connections without a word": {func(n int, _ *http.Request, q []byte) string {
			if n > 1 {
				return ""
			}
			return ok(q)
		}, 3, ""},
		"pieces, and what is behind them": {func(_ int, _ *http.Request, q []byte) string {
			b := replyTo(q)
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + string(b[:5]) + "\r\n" +
				strconv.FormatInt(int64(len(b)-5), 16) + "\r\n" + string(b[5:]) + "\r\n0\r\nX: y\r\n\r\n"
		}, 1, ""},
		"continue": {func(_ int, _ *http.Request, q []byte) string {
			return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(q)
		}, 1, ""},
		"another protocol": {func(int, *http.Request, []byte) string { return "HTTP/1.1 101 Switching Protocols\r\n\r\n" }, 3, "nobody has asked"},
		"no HTTP":          {func(int, *http.Request, []byte) string { return "220 mail.example.org\r\n" }, 3, "malformed"},
		"an endless header": {func(int, *http.Request, []byte) string {
			return "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1000)
		}, 3, "EOF"},
		"an endless body": {func(int, *http.Request, []byte) string {
			return "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1000000)
		}, 3, "longer than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			p, conns := http1Upstream(t, tc.answer)
			for range 3 {
				m, err := ask(p, "www.example.org.", Options{})
				if tc.err == "" && (err != nil || len(m.Answer) != 1) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Fatalf("%v %v, want %q", m, err, tc.err)
				}
			}
			if n := conns.Load(); n != tc.conns {
				t.Errorf("%d connections, want %d", n, tc.conns)
			}
		})
	}
}

// The requests, as they are written.
func TestHTTP1Request(t *testing.T) {
	for method, want := range map[string]string{
		http.MethodPost: "POST /dns-query HTTP/1.1|dns.example.org|Accept: application/dns-message|Accept-Encoding: gzip|" +
			"Content-Type: application/dns-message|User-Agent: Go-http-client/1.1|33",
		http.MethodGet: "GET /dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB HTTP/1.1|dns.example.org|Accept: application/dns-message|" +
			"Accept-Encoding: gzip|Content-Type: application/dns-message|User-Agent: Go-http-client/1.1|0",
	} {
		var got atomic.Value
		p, _ := http1Upstream(t, func(_ int, r *http.Request, q []byte) string {
			var b bytes.Buffer
			length := strconv.FormatInt(r.ContentLength, 10)
			r.Header.Del("Content-Length")
			r.Header.Write(&b)
			got.Store(r.Method + " " + r.RequestURI + " " + r.Proto + "|" + r.Host + "|" + strings.ReplaceAll(b.String(), "\r\n", "|") + length)
			return ok(q)
		})
		p.SetDOHRequestOptions(method)
		p.SetDOHHost("dns.example.org")
		if _, err := ask(p, "www.example.org.", Options{}); err != nil || got.Load() != want {
			t.Errorf("%v\n%s, want\n%s", err, got.Load(), want)
		}
	}
}

// Each query has a connection of its own, and no more are opened than there may be.
func TestHTTP1Connections(t *testing.T) {
	const all = maxHTTPConns + 20
	var now, most atomic.Int64
	p, conns := http1Upstream(t, func(_ int, _ *http.Request, q []byte) string {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		return ok(q)
	})
	askMany(t, p, all)
	if n := conns.Load(); n < 2 || n > maxHTTPConns || most.Load() > maxHTTPConns {
		t.Errorf("%d connections, %d queries at one time", n, most.Load())
	}
}

// A query that is given up leaves its connection to nobody: the response may come still.
func TestHTTP1GivesUp(t *testing.T) {
	release := make(chan struct{})
	p, conns := http1Upstream(t, func(_ int, _ *http.Request, q []byte) string {
		if bytes.Contains(q, []byte("\x04slow")) {
			<-release
		}
		return ok(q)
	})
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	p.SetReadTimeout(100 * time.Millisecond)
	if _, err := ask(p, "slow.example.org.", Options{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	close(release)
	p.SetReadTimeout(20 * time.Second)
	if m, err := ask(p, "www.example.org.", Options{}); err != nil || m.Question[0].Name != "www.example.org." || conns.Load() != 2 {
		t.Errorf("%v %v, %d connections", m, err, conns.Load())
	}
	eventually.Holds(t, "the first connection is closed", func() bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		return len(p.engine.https.conns) == 1
	})
}

func FuzzHTTP1(f *testing.F) {
	f.Add([]byte(ok(packedQuery("www.example.org."))))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200\r\n\r\nx"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzHTTP(t, b, func(c *httpConn) httpProtocol { return &http1{conn: c} })
	})
}
