//go:build !nohttps && !nohttps3

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
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Responses are counted by server and status, those of HTTP/3 on their own.
func TestHTTPCounts(t *testing.T) {
	for scheme, counters := range map[string]*prometheus.CounterVec{
		"https/1": vars.HTTPSResponsesCount, "https/2": vars.HTTPSResponsesCount, "https3": vars.HTTPS3ResponsesCount,
	} {
		s := serving(t, blockFor(t, scheme, new(laneHandler)))
		c := clients.Connect(t, scheme, s.addr)
		for name, status := range map[string]int{"www.": 200, "drop.": 500} {
			counted := counters.WithLabelValues(s.base().Addr, fmt.Sprint(status))
			before := testutil.ToFloat64(counted)
			if _, err := c.Ask(query(name)); (err == nil) != (status == 200) {
				t.Errorf("%s, %s: %v", scheme, name, err)
			}
			if n := testutil.ToFloat64(counted) - before; n != 1 {
				t.Errorf("%s, %s: counted %v", scheme, name, n)
			}
		}
	}
}

// The last block that says so decides which requests are for us.
func TestHTTPValidator(t *testing.T) {
	for _, scheme := range []string{"https/1", "https/2", "https3"} {
		cfg := blockFor(t, scheme, new(laneHandler))
		cfg.HTTPRequestValidateFunc = func(r *http.Request) bool { return r.URL.Path == "/other" }
		s := serving(t, cfg)
		c := clients.Connect(t, scheme, s.addr).(*clients.HTTPClient)
		for path, want := range map[string]int{"/other": 200, doh.Path: 404} {
			resp, err := c.Client.Post(c.URL+path, doh.MimeType, bytes.NewReader(packed(t, query("www."))))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s, %s: got %d", scheme, path, resp.StatusCode)
			}
		}
	}
	first, last := func(*http.Request) bool { return false }, func(*http.Request) bool { return true }
	group := []*Config{{}, {HTTPRequestValidateFunc: first}, {HTTPRequestValidateFunc: last}, {}}
	if valid := validator(group); valid == nil || !valid(nil) {
		t.Error("the first one decides")
	}
	if validator(group[:1]) != nil {
		t.Error("there is one where none is configured")
	}
}

// Requests have the length of their body, for the function that validates them and for plugins. These find it read.
func TestHTTPContentLength(t *testing.T) {
	packet := packed(t, query("unpack."))
	for _, scheme := range []string{"https/1", "https/2", "https3"} {
		var lengths [2]atomic.Int64
		cfg := blockFor(t, scheme, handler{"keeps", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			req := ctx.Value(HTTPRequestKey{}).(*http.Request)
			lengths[1].Store(req.ContentLength)
			if rest, _ := io.ReadAll(req.Body); len(rest) > 0 {
				t.Errorf("%s: %s: %d octets are left of the body", scheme, req.Method, len(rest))
			}
			return echo.serve(ctx, w, r)
		}})
		cfg.HTTPRequestValidateFunc = func(r *http.Request) bool {
			lengths[0].Store(r.ContentLength)
			return true
		}
		c := clients.Connect(t, scheme, serving(t, cfg).addr).(*clients.HTTPClient)
		for method, want := range map[string]int64{http.MethodGet: 0, http.MethodPost: int64(len(packet))} {
			url, body := c.URL+doh.Path, bytes.NewReader(packet)
			if method == http.MethodGet {
				url += "?dns=" + base64.RawURLEncoding.EncodeToString(packet)
				body.Reset(nil)
			}
			req, err := http.NewRequestWithContext(t.Context(), method, url, body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			for i := range lengths { // of a request without a body that is 0, or -1 for none
				if got := max(0, lengths[i].Load()); got != want || resp.StatusCode != 200 {
					t.Errorf("%s: %s: got %d, length %d, want %d", scheme, method, resp.StatusCode, got, want)
				}
			}
		}
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
