package doh_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/doh"
)

// query returns a question as a message and as a packet.
func query(t testing.TB) (*dns.Msg, []byte) {
	t.Helper()
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeDNSKEY)
	m.Id = 4711
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return m, wire
}

// body is a body that knows whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// endless gives zeros and counts them.
type endless int

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	*e += endless(len(b))
	return len(b), nil
}

func TestThereAndBack(t *testing.T) {
	m, wire := query(t)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := doh.NewRequest(method, "https://dns.example.org", "", m)
		if err != nil {
			t.Fatal(err)
		}
		if req.Header.Get("Content-Type") != doh.MimeType || req.Header.Get("Accept") != doh.MimeType {
			t.Errorf("%s: got header %v", method, req.Header)
		}
		got, packet, err := doh.RequestToMsgWire(req)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if got.String() != m.String() || !bytes.Equal(packet, wire) {
			t.Errorf("%s: got %v, %x", method, got, packet)
		}
	}
	req, _ := doh.NewRequest(http.MethodPost, "https://dns.example.org", "", m)
	if got, err := doh.RequestToMsg(req); err != nil || got.String() != m.String() {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNewRequestAddress(t *testing.T) {
	m, _ := query(t)
	for _, tc := range []struct{ url, host, wantURL, wantHost string }{
		{"192.0.2.1:443", "", "https://192.0.2.1:443/dns-query", "192.0.2.1:443"},
		{"[2001:db8::1]", "", "https://[2001:db8::1]/dns-query", "[2001:db8::1]"},
		{"https://dns.example.org", "", "https://dns.example.org/dns-query", "dns.example.org"},
		{"http://dns.example.org", "", "http://dns.example.org/dns-query", "dns.example.org"},
		{"https://dns.example.org/dns-query", "", "https://dns.example.org/dns-query", "dns.example.org"},
		{"192.0.2.1:443", "dns.example.org", "https://192.0.2.1:443/dns-query", "dns.example.org"},
	} {
		req, err := doh.NewRequest(http.MethodPost, tc.url, tc.host, m)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		if req.URL.String() != tc.wantURL || req.Host != tc.wantHost {
			t.Errorf("%s: got %s, host %s", tc.url, req.URL, req.Host)
		}
	}
}

func TestNewRequestErrors(t *testing.T) {
	m, _ := query(t)
	if _, err := doh.NewRequest(http.MethodPut, "dns.example.org", "", m); err == nil || err.Error() != "method not allowed: PUT" {
		t.Errorf("PUT: got %v", err)
	}
	if _, err := doh.NewRequest(http.MethodGet, "https://[::", "", m); err == nil {
		t.Error("a broken URL was taken")
	}
	broken := new(dns.Msg).SetQuestion(strings.Repeat("a", 64)+".", dns.TypeA)
	if _, err := doh.NewRequest(http.MethodGet, "dns.example.org", "", broken); err == nil {
		t.Error("a message that cannot be packed was taken")
	}
}

func TestNewRequestWithContext(t *testing.T) {
	m, _ := query(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req, err := doh.NewRequestWithContext(ctx, http.MethodGet, "dns.example.org", "", m)
	if err != nil || !errors.Is(req.Context().Err(), context.Canceled) {
		t.Errorf("got %v, %v", req, err)
	}
}

func TestRequestToMsgGet(t *testing.T) {
	m, wire := query(t)
	text := base64.RawURLEncoding.EncodeToString(wire)
	for name, tc := range map[string]struct{ query, want string }{
		"message":         {"dns=" + text, ""},
		"other parameter": {"ct=x&dns=" + text + "&a=b", ""},
		"nothing":         {"", "no 'dns' query parameter found"},
		"other name":      {"DNS=" + text, "no 'dns' query parameter found"},
		"twice":           {"dns=" + text + "&dns=" + text, "multiple 'dns' query values found"},
		"empty":           {"dns=", dns.ErrBuf.Error()},
		"short":           {"dns=AAAA", dns.ErrBuf.Error()},
		"padding":         {"dns=" + text[:18] + "==", "illegal base64 data"},
		"base64, not url": {"dns=" + text[:19] + "/", "illegal base64 data"},
		"reply":           {"dns=" + base64.RawURLEncoding.EncodeToString(append([]byte{0, 0, 0x80}, wire[3:]...)), "dns request rejected"},
		"too long":        {"dns=" + strings.Repeat("A", 87383), "dns message is longer than 64 KiB"},
		"far too long":    {strings.Repeat("a=b&", 40000) + "dns=" + text, "dns message is longer than 64 KiB"},
		"long":            {"dns=" + text + strings.Repeat("A", 87382-len(text)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, doh.Path+"?"+tc.query, nil)
			got, _, err := doh.RequestToMsgWire(req)
			if tc.want == "" {
				if err != nil || got.Question[0] != m.Question[0] {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if got != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestRequestToMsgPost(t *testing.T) {
	m, wire := query(t)
	b := &body{Reader: bytes.NewReader(wire)}
	req := httptest.NewRequest(http.MethodPost, doh.Path, b)
	req.Header.Set("Content-Type", "text/plain")
	got, packet, err := doh.RequestToMsgWire(req)
	if err != nil || got.Question[0] != m.Question[0] || !bytes.Equal(packet, wire) || !b.closed {
		t.Errorf("got %v, %x, %v, closed %t", got, packet, err, b.closed)
	}

	longest := append(wire[:len(wire):len(wire)], make([]byte, 65536-len(wire))...)
	if _, err := doh.RequestToMsg(httptest.NewRequest(http.MethodPost, doh.Path, bytes.NewReader(longest))); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	longer := append(longest, 0)
	if _, err := doh.RequestToMsg(httptest.NewRequest(http.MethodPost, doh.Path, bytes.NewReader(longer))); err == nil || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("an octet more: %v", err)
	}

	var octets endless
	if _, err := doh.RequestToMsg(httptest.NewRequest(http.MethodPost, doh.Path, &octets)); err == nil || octets > 1<<18 {
		t.Errorf("endless: got %v after %d octets", err, octets)
	}
	if _, err := doh.RequestToMsg(&http.Request{Method: http.MethodPost}); err == nil {
		t.Error("no body: got no error")
	}
}

func TestRequestToMsgOtherMethods(t *testing.T) {
	for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodOptions} {
		_, err := doh.RequestToMsg(httptest.NewRequest(method, doh.Path, nil))
		if err == nil || err.Error() != "method not allowed: "+method {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

func TestResponseToMsg(t *testing.T) {
	m, wire := query(t)
	for name, tc := range map[string]struct {
		status int
		body   string
		ok     bool
	}{
		"answer":        {http.StatusOK, string(wire), true},
		"made by hand":  {0, string(wire), true},
		"failure":       {http.StatusBadGateway, string(wire), false},
		"redirect":      {http.StatusFound, "", false},
		"empty":         {http.StatusOK, "", false},
		"cut":           {http.StatusOK, string(wire[:20]), false},
		"not a message": {http.StatusOK, "<html>", false},
		"too long":      {http.StatusOK, string(wire) + strings.Repeat("\x00", 65536), false},
	} {
		b := &body{Reader: strings.NewReader(tc.body)}
		got, err := doh.ResponseToMsg(&http.Response{StatusCode: tc.status, Body: b})
		if (err == nil) != tc.ok || tc.ok && got.Question[0] != m.Question[0] || !tc.ok && got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		if !b.closed {
			t.Errorf("%s: the body was not closed", name)
		}
	}
	if _, err := doh.ResponseToMsg(&http.Response{StatusCode: http.StatusNoContent}); err == nil {
		t.Error("no body: got no error")
	}
}

func FuzzRequestToMsg(f *testing.F) {
	_, wire := query(f)
	f.Add(false, "dns="+base64.RawURLEncoding.EncodeToString(wire), []byte(nil))
	f.Add(false, "dns=%41%41AA&dns=x", []byte(nil))
	f.Add(true, "", wire)
	f.Fuzz(func(t *testing.T, post bool, rawQuery string, b []byte) {
		req := httptest.NewRequest(http.MethodGet, doh.Path, bytes.NewReader(b))
		req.URL.RawQuery = rawQuery
		if post {
			req.Method = http.MethodPost
		}
		m, packet, err := doh.RequestToMsgWire(req)
		if (m == nil) != (err != nil) || (packet == nil) != (err != nil) {
			t.Fatalf("got %v, %x, %v", m, packet, err)
		}
		if err != nil {
			return
		}
		if post && !bytes.Equal(packet, b) {
			t.Fatalf("got packet %x of %x", packet, b)
		}
		if want := new(dns.Msg); want.Unpack(packet) != nil || want.String() != m.String() {
			t.Fatalf("got %v of %x", m, packet)
		}
		// What was accepted can be asked again, and is the same then.
		again, err := doh.NewRequest(req.Method, "dns.example.org", "", m)
		if err != nil {
			return // what was read leniently need not be packed
		}
		if _, err := doh.RequestToMsg(again); err != nil {
			t.Fatalf("%v is accepted once only: %v", m, err)
		}
	})
}

func TestAppendQueryDoesNotAllocate(t *testing.T) {
	_, wire := query(t)
	text := "dns=" + base64.RawURLEncoding.EncodeToString(wire)
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		if got, err := doh.AppendQuery(buf, text); err != nil || !bytes.Equal(got, wire) {
			t.Fatalf("got %x, %v", got, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if got, err := doh.AppendQuery([]byte("x"), "dns=!"); err == nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzAppendQuery compares with what net/url and encoding/base64 make of the parameter.
func FuzzAppendQuery(f *testing.F) {
	f.Add("dns=AAAA")
	f.Add("a=b&dns=AA%41A")
	f.Add("dns=AA;AA")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := doh.AppendQuery(nil, raw)
		values, _ := url.ParseQuery(raw)
		if len(values["dns"]) != 1 {
			if err == nil {
				t.Fatalf("%q: got %x", raw, got)
			}
			return
		}
		want, wantErr := base64.RawURLEncoding.DecodeString(values["dns"][0])
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q: got %x, %v, want %x, %v", raw, got, err, want, wantErr)
		}
	})
}
