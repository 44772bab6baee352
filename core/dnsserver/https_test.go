package dnsserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// told is what a client sees of a response, apart from the reply.
type told struct {
	status      int
	kind, cache string
	body        string // of text
}

// get sends a request of any kind.
func get(t *testing.T, c *clients.HTTPClient, method, target, body string) (told, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, c.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	if resp.Header.Get("Date") == "" || method != http.MethodHead && resp.Header.Get("Content-Length") != fmt.Sprint(len(b)) {
		t.Errorf("%s %s: header %v, body %d octets", method, target, resp.Header, len(b))
	}
	out := told{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"), ""}
	if out.kind != doh.MimeType {
		out.body = string(b)
		if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: header %v", method, target, resp.Header)
		}
	}
	return out, b
}

func TestHTTPResponses(t *testing.T) {
	s := serving(t, blockFor(t, "https", new(laneHandler)))
	inURL := func(b []byte) string { return "/dns-query?dns=" + base64.RawURLEncoding.EncodeToString(b) }
	good := packed(t, query("www."))
	reply := query("www.")
	reply.Response = true
	notify := query("www.").SetNotify("www.")
	const binary = doh.MimeType
	bad := told{400, plainText, "", "invalid request\n"}
	for _, tc := range []struct {
		name, method, target, body string
		want                       told
	}{
		{"GET", "GET", inURL(good), "", told{200, binary, "max-age=60", ""}},
		{"POST", "POST", "/dns-query", string(good), told{200, binary, "max-age=60", ""}},
		{"POST with a parameter", "POST", "/dns-query?a=b", string(good), told{200, binary, "max-age=60", ""}},
		{"message lane", "POST", "/dns-query", string(packed(t, query("unpack."))), told{200, binary, "max-age=60", ""}},
		{"error", "POST", "/dns-query", string(packed(t, query("fail."))), told{200, binary, "max-age=5", ""}},
		{"NOTIFY", "POST", "/dns-query", string(packed(t, notify)), told{200, binary, "max-age=5", ""}},
		{"other path", "GET", "/", "", told{404, plainText, "", "\n"}},
		{"longer path", "GET", "/dns-query/" + inURL(good)[10:], "", told{404, plainText, "", "\n"}},
		{"POST to another path", "POST", "/other", string(good), told{404, plainText, "", "\n"}},
		{"no parameter", "GET", "/dns-query", "", bad},
		{"two", "GET", inURL(good) + "&dns=AAAA", "", bad},
		{"padding", "GET", inURL(good[:13]) + "=", "", bad},
		{"not base64", "GET", "/dns-query?dns=!", "", bad},
		{"short", "GET", inURL(good[:11]), "", bad},
		{"cut", "POST", "/dns-query", string(good[:20]), bad},
		{"empty", "POST", "/dns-query", "", bad},
		{"a reply", "POST", "/dns-query", string(packed(t, reply)), bad},
		{"too long", "POST", "/dns-query", strings.Repeat("x", 70000), bad},
		{"HEAD", "HEAD", inURL(good), "", told{400, plainText, "", ""}},
		{"PUT", "PUT", "/dns-query", string(good), bad},
		{"DELETE", "DELETE", "/dns-query", "", bad},
		{"nothing written", "POST", "/dns-query", string(packed(t, query("drop."))), told{500, plainText, "", "No response\n"}},
	} {
		for _, version := range []int{1, 2} {
			c := clients.DialHTTP(t, s.addr, "", version)
			label := fmt.Sprint(tc.want.status)
			counted := vars.HTTPSResponsesCount.WithLabelValues(s.base().Addr, label)
			before := testutil.ToFloat64(counted)
			got, body := get(t, c, tc.method, tc.target, tc.body)
			if got != tc.want {
				t.Errorf("%s, HTTP/%d: got %+v, want %+v", tc.name, version, got, tc.want)
			}
			if n := testutil.ToFloat64(counted) - before; n != 1 {
				t.Errorf("%s, HTTP/%d: counted %v times", tc.name, version, n)
			}
			if got.kind == binary {
				if m := new(dns.Msg); m.Unpack(body) != nil || !m.Response {
					t.Errorf("%s, HTTP/%d: %x", tc.name, version, body)
				}
			}
			c.Close()
		}
	}
}

// TestHTTPLongest asks with messages as long as they can be.
func TestHTTPLongest(t *testing.T) {
	s := serving(t, blockFor(t, "https", new(laneHandler)))
	m := query("www.").SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 65535-37)}}
	for m.Len() > 65535 {
		p := m.IsEdns0().Option[0].(*dns.EDNS0_PADDING)
		p.Padding = p.Padding[1:]
	}
	for _, version := range []int{1, 2} {
		for _, method := range []string{"GET", "POST"} {
			r, err := clients.DialHTTP(t, s.addr, method, version).Ask(m)
			if err != nil || len(r.Answer) != 1 {
				t.Errorf("%s of %d octets, HTTP/%d: %v", method, m.Len(), version, err)
			}
		}
	}
}

func TestHTTPQueryBytes(t *testing.T) {
	cfg := blockFor(t, "https", new(laneHandler))
	most := 100
	cfg.Limits.QueryBytes = &most
	s := serving(t, cfg)
	long := query(strings.Repeat("a.", 60))
	for _, version := range []int{1, 2} {
		for _, method := range []string{"GET", "POST"} {
			before := limitedTo(s, "query_bytes")
			c := clients.DialHTTP(t, s.addr, method, version)
			if _, err := c.Ask(long); err == nil || limitedTo(s, "query_bytes") != before+1 {
				t.Errorf("%s, HTTP/%d: %v, counted %d", method, version, err, limitedTo(s, "query_bytes")-before)
			}
			if _, err := c.Ask(query("www.")); err != nil {
				t.Errorf("%s, HTTP/%d: %v", method, version, err)
			}
		}
	}
}

func TestHTTPHeaderBytes(t *testing.T) {
	cfg := blockFor(t, "https", new(laneHandler))
	most := 1000
	cfg.Limits.HeaderBytes = &most
	s := serving(t, cfg)
	for _, version := range []int{1, 2} {
		c := clients.DialHTTP(t, s.addr, "", version)
		before := limitedTo(s, "header_bytes")
		if got, _ := get(t, c, "GET", "/dns-query?"+strings.Repeat("x=y&", 150), ""); got.status != 400 {
			t.Errorf("HTTP/%d: %+v", version, got)
		}
		if got, _ := get(t, c, "GET", "/dns-query?"+strings.Repeat("x=y&", 240), ""); got.status != 431 || limitedTo(s, "header_bytes") != before+1 {
			t.Errorf("HTTP/%d: %+v, counted %d", version, got, limitedTo(s, "header_bytes")-before)
		}
	}
}

// TestHTTPRequest looks at the request that validators and plugins see.
func TestHTTPRequest(t *testing.T) {
	type seen struct {
		host, uri, path, method, agent, remote string
		tls                                    bool
		version                                int
	}
	describe := func(r *http.Request) seen {
		return seen{r.Host, r.RequestURI, r.URL.Path, r.Method, r.UserAgent(), r.RemoteAddr, r.TLS != nil && r.TLS.HandshakeComplete, r.ProtoMajor}
	}
	got := make(chan seen, 10)
	h := handler{"h", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		req, _ := ctx.Value(HTTPRequestKey{}).(*http.Request)
		s := describe(req)
		if s.remote != w.RemoteAddr().String() {
			t.Errorf("the writer's client is %v, the request's %s", w.RemoteAddr(), s.remote)
		}
		got <- s
		return echo.serve(ctx, w, r)
	}}
	cfg := blockFor(t, "https", h)
	cfg.HTTPRequestValidateFunc = func(r *http.Request) bool {
		got <- describe(r)
		return r.URL.Path == "/other"
	}
	s := serving(t, cfg)
	for _, version := range []int{1, 2} {
		c := clients.DialHTTP(t, s.addr, "", version)
		req, err := http.NewRequest("POST", c.URL+"/other?x=y", bytes.NewReader(packed(t, query("www."))))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "test")
		resp, err := c.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doh.ResponseToMsg(resp); err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		for _, who := range []string{"validator", "plugin"} {
			g := <-got
			g.remote = ""
			if want := (seen{s.addr, "/other?x=y", "/other", "POST", "test", "", true, version}); g != want {
				t.Errorf("HTTP/%d: the %s sees %+v, want %+v", version, who, g, want)
			}
		}
		if got, _ := get(t, c, "GET", "/dns-query", ""); got.status != 404 {
			t.Errorf("HTTP/%d: %+v", version, got)
		}
		<-got
	}
}

// TestServeHTTPWithoutSocket calls the handler as others may do.
func TestServeHTTPWithoutSocket(t *testing.T) {
	for _, name := range []string{"www.", "unpack."} {
		sh, err := NewServerHTTPS("https://127.0.0.1:443", []*Config{blockFor(t, "https", new(laneHandler))})
		if err != nil {
			t.Fatal(err)
		}
		s3, err := NewServerHTTPS3("https3://127.0.0.1:443", []*Config{blockFor(t, "https3", new(laneHandler))})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []http.Handler{sh, s3} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", "/dns-query", bytes.NewReader(packed(t, query(name)))))
			m := new(dns.Msg)
			if w.Code != 200 || m.Unpack(w.Body.Bytes()) != nil || len(m.Answer) != 1 {
				t.Errorf("%T: %d, %v", h, w.Code, m)
			}
		}
	}
}

// TestPlainHTTP serves without TLS, as behind a proxy.
func TestPlainHTTP(t *testing.T) {
	cfg := blockFor(t, "https", new(laneHandler))
	cfg.TLSConfig = nil
	s := serving(t, cfg)
	c := clients.DialHTTP(t, s.addr, "GET", 1)
	c.URL = strings.Replace(c.URL, "https", "http", 1)
	if r, err := c.Ask(query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestHTTPConnections(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := newGate(t)
		cfg := blockFor(t, "https", g)
		most := 4
		cfg.MaxHTTPSConnections = &most
		s := serving(t, cfg)
		busy := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := clients.DialHTTP(t, s.addr, "POST", version).Ask(query("slow."))
				busy <- err
			}()
		}
		g.holds(t, 2)
		for range 10 {
			dial(t, s.addr) // not even a handshake
		}
		if _, err := clients.DialHTTP(t, s.addr, "POST", version).Ask(query("www.")); err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		g.open()
		for range 2 {
			if err := <-busy; err != nil {
				t.Errorf("HTTP/%d: a connection at work was closed: %v", version, err)
			}
		}
	}
}

// TestHTTPStops has a server stop while requests are at work.
func TestHTTPStops(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := newGate(t)
		s := serving(t, blockFor(t, "https", g))
		c := clients.DialHTTP(t, s.addr, "POST", version)
		if _, err := c.Ask(query("www.")); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			_, err := c.Ask(query("slow."))
			done <- err
		}()
		g.holds(t, 1)
		ended := stopping(t, s.base())
		g.open()
		ended()
		if err := <-done; err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		s.wait()
	}
}

func TestHTTPProtocols(t *testing.T) {
	s := serving(t, blockFor(t, "https", new(laneHandler)))
	for _, tc := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"h2", "http/1.1"}, "h2"}, {[]string{"http/1.1"}, "http/1.1"}} {
		c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: tc.offered})
		if err != nil {
			t.Errorf("%v: %v", tc.offered, err)
			continue
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != tc.want {
			t.Errorf("%v: got %q", tc.offered, got)
		}
		c.Close()
	}
}
