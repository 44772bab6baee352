package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// httpsUpstream is a DoH upstream with a client that trusts it.
func httpsUpstream(t *testing.T, handle http.HandlerFunc) *Proxy {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	return p
}

func queryOf(r *http.Request) []byte {
	if r.Method == http.MethodGet {
		b, _ := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
		return b
	}
	b, _ := io.ReadAll(r.Body)
	return b
}

func TestDoH(t *testing.T) {
	var mu sync.Mutex
	var seen *http.Request
	p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		q := queryOf(r)
		mu.Lock()
		seen = r
		mu.Unlock()
		if len(q) < 12 || q[0] != 0 || q[1] != 0 || r.URL.Path != doh.Path || r.Header.Get("Accept") != doh.MimeType {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", doh.MimeType)
		w.Write(replyTo(q))
	})
	p.SetDOHHost("dns.example.org")
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		p.SetDOHRequestOptions(method)
		m, err := ask(p, "www.example.org.", Options{})
		if err != nil || len(m.Answer) != 1 {
			t.Fatal(method, m, err)
		}
		mu.Lock()
		if seen.Method != method || seen.Host != "dns.example.org" || seen.ProtoMajor != 2 {
			t.Errorf("got %s to %s with HTTP/%d", seen.Method, seen.Host, seen.ProtoMajor)
		}
		if ct := seen.Header.Get("Content-Type"); ct != doh.MimeType {
			t.Errorf("content type %q", ct)
		}
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p.followingClient().Transport.(*http.Transport).Proxy != nil {
		t.Error("queries may go through a proxy of the environment")
	}
	if err := p.GetHealthchecker().Check(p); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen.Method != http.MethodPost {
		t.Errorf("a health check with %s", seen.Method)
	}
}

func TestDoHErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"a status":       {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); w.Write(replyTo(queryOf(r))) }, "answered with status 500"},
		"no content":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, "answered with status 204"},
		"too much":       {func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 70000)) }, "longer than 64 KiB"},
		"a page":         {func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("<html>hello")) }, "answered with text/html"},
		"no message":     {func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 20)) }, ErrMismatch.Error()},
		"other question": {func(w http.ResponseWriter, r *http.Request) { b := replyTo(queryOf(r)); b[13] ^= 1; w.Write(b) }, ErrMismatch.Error()},
		"silence":        {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "i/o timeout"},
	} {
		p := httpsUpstream(t, tc.handle)
		if name == "silence" {
			p.SetReadTimeout(200 * time.Millisecond)
		}
		if _, err := ask(p, "www.example.org.", Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Queries are led to other places of HTTPS, and to no others: they would be there for all to read, and to answer.
func TestDoHRedirects(t *testing.T) {
	var inTheClear atomic.Int64
	clear := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inTheClear.Add(1)
		w.Header().Set("Content-Type", doh.MimeType)
		w.Write(replyTo(queryOf(r)))
	}))
	t.Cleanup(clear.Close)
	for to, good := range map[string]bool{"/else": true, doh.Path: false, clear.URL: false} {
		var here atomic.Int64
		p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == doh.Path {
				here.Add(1)
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
				return
			}
			w.Header().Set("Content-Type", doh.MimeType)
			w.Write(replyTo(queryOf(r)))
		})
		m, err := ask(p, "www.example.org.", Options{})
		if (err == nil) != good || !good && !errors.Is(err, errRedirect) {
			t.Errorf("%s: %v %v", to, m, err)
		}
		if !good {
			continue
		}
		// From the second query on nobody else is asked first.
		before := here.Load()
		if _, err := ask(p, "www.example.org.", Options{}); err != nil || here.Load() != before+1 {
			t.Errorf("%d requests, %v", here.Load()-before, err)
		}
	}
	if n := inTheClear.Load(); n > 0 {
		t.Errorf("%d queries went in the clear", n)
	}
}

// A reply counts, whatever its sender calls it.
func TestDoHOddType(t *testing.T) {
	p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.Write(replyTo(queryOf(r)))
	})
	if m, err := ask(p, "www.example.org.", Options{}); err != nil || len(m.Answer) != 1 {
		t.Error(m, err)
	}
}

// What a cache of HTTP has had for a while is to be kept for as much less (RFC 8484 §5.1).
func TestDoHAge(t *testing.T) {
	var age atomic.Value
	p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		var m dns.Msg
		if err := m.Unpack(queryOf(r)); err != nil {
			t.Error(err)
		}
		m.SetReply(&m)
		m.Answer = []dns.RR{test.A("www.example.org. 600 IN A 192.0.2.1")}
		m.Ns = []dns.RR{test.NS("example.org. 100 IN NS ns.example.org.")}
		m.Extra = []dns.RR{test.A("ns.example.org. 0 IN A 192.0.2.2")}
		m.SetEdns0(1232, true)
		b, err := m.Pack()
		if err != nil {
			t.Error(err)
		}
		w.Header()["Age"] = []string{age.Load().(string)}
		w.Write(b)
	})
	for _, tc := range []struct {
		age  string
		want [3]uint32
	}{
		{"", [3]uint32{600, 100, 0}}, {"0", [3]uint32{600, 100, 0}}, {"250", [3]uint32{350, 0, 0}}, {"100", [3]uint32{500, 0, 0}},
		{"99999999999999999999", [3]uint32{}}, {"-5", [3]uint32{600, 100, 0}}, {"soon", [3]uint32{600, 100, 0}},
		{"250, 7", [3]uint32{350, 0, 0}}, {"250 ,soon", [3]uint32{350, 0, 0}}, {"soon, 250", [3]uint32{600, 100, 0}},
	} {
		age.Store(tc.age)
		m, err := ask(p, "www.example.org.", Options{})
		if err != nil {
			t.Fatal(tc.age, err)
		}
		if got := [3]uint32{m.Answer[0].Header().Ttl, m.Ns[0].Header().Ttl, m.Extra[0].Header().Ttl}; got != tc.want {
			t.Errorf("Age %q: TTLs of %d", tc.age, got)
		}
		if opt := m.IsEdns0(); opt == nil || !opt.Do() {
			t.Errorf("Age %q: OPT is %v", tc.age, opt)
		}
	}
}

func TestDoHIsCanceledAndStopped(t *testing.T) {
	asked := make(chan bool, 1)
	p := httpsUpstream(t, func(w http.ResponseWriter, r *http.Request) { asked <- true; <-r.Context().Done() })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	if _, err := askCtx(ctx, p, "www.example.org.", Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { <-asked; p.Stop() }()
	if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, errStopped) {
		t.Error(err)
	}
}

// A client may read the body of a request that has failed, until it closes it: by then the query is its owner's.
func TestDoHFailsWhileItSends(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:443", transport.HTTPS)
	sending := make(failing, 1)
	p.SetHTTPClient(&http.Client{Transport: sending})
	query, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	query[0], query[1] = 0, 0
	want := string(query)
	if err := p.roundTrip(context.Background(), &Exchange{Query: query}, new(bytes.Buffer)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	clear(query)
	if got, err := io.ReadAll(<-sending); err != nil || string(got) != want {
		t.Errorf("%q is sent, not %q: %v", got, want, err)
	}
}

// failing fails requests before it has read their bodies, which it hands out.
type failing chan io.ReadCloser

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	f <- r.Body
	return nil, io.ErrUnexpectedEOF
}
