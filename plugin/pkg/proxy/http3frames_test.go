package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/doh"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// http3Frame is a frame with a payload.
func http3Frame(kind uint64, payload string) string {
	return string(append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...))
}

// http3Header is a frame with a header: names and values by turns.
func http3Header(fields ...string) string {
	var block bytes.Buffer
	e := qpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		e.WriteField(qpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return http3Frame(frameHeaders, block.String())
}

func TestHTTP3Response(t *testing.T) {
	ok := http3Header(":status", "200", "content-type", "application/dns-message", "age", "7", "age", "9")
	data := func(s string) string { return http3Frame(frameData, s) }
	for _, tc := range []struct {
		name, in, body string
		code           quic.ApplicationErrorCode // of a fault
		err            error
	}{
		{name: "plain", in: ok + data("reply"), body: "reply"},
		{name: "in pieces", in: ok + data("re") + data("") + data("ply"), body: "reply"},
		{name: "unknown frames", in: http3Frame(0x21, "x") + ok + http3Frame(0x40, "yy") + data("re") + http3Frame(0x2f, "") + data("ply"), body: "reply"},
		{name: "a provisional one before", in: http3Header(":status", "103", "age", "5") + ok + data("reply"), body: "reply"},
		{name: "a trailer", in: ok + data("reply") + http3Header("age", "3"), body: "reply"},
		{name: "nothing", err: errNoResponse},
		{name: "a provisional one alone", in: http3Header(":status", "100"), err: errNoResponse},
		{name: "no status", in: http3Header("age", "1"), err: errNoStatus},
		{name: "an odd status", in: http3Header(":status", "0200000"), err: errNoStatus},
		{name: "data first", in: data("x") + ok, code: codeFrameUnexpected},
		{name: "data behind a provisional one", in: http3Header(":status", "100") + data("x"), code: codeFrameUnexpected},
		{name: "data behind the trailer", in: ok + http3Header("age", "3") + data("x"), code: codeFrameUnexpected},
		{name: "two trailers", in: ok + http3Header("age", "3") + http3Header("age", "3"), code: codeFrameUnexpected},
		{name: "a frame of HTTP/2", in: ok + http3Frame(0x8, ""), code: codeFrameUnexpected},
		{name: "settings", in: http3Frame(frameSettings, "") + ok, code: codeFrameUnexpected},
		{name: "a push", in: http3Frame(framePushPromise, "\x00") + ok, code: codeID},
		{name: "cut in the data", in: (ok + data("reply"))[:len(ok)+4], code: codeFrame},
		{name: "cut in the length", in: ok + "\x00\x40", code: codeFrame},
		{name: "cut behind the type", in: ok + "\x00", code: codeFrame},
		{name: "too long for all that there is", in: ok + "\x00\xff\xff\xff\xff\xff\xff\xff\xff", code: codeFrame},
		{name: "a header of a table that nobody has", in: http3Frame(frameHeaders, "\x02\x00\x80"), code: codeDecompression},
	} {
		in := []byte(tc.in)
		r, err := http3Response(in)
		var fault http3Fault
		if errors.As(err, &fault); fault.code != tc.code || tc.code == 0 && !errors.Is(err, tc.err) {
			t.Errorf("%s: %v (0x%x)", tc.name, err, uint64(fault.code))
		}
		if err == nil && (string(r.body) != tc.body || r.status != 200 || r.age() != 7 || r.mediaType != "application/dns-message") {
			t.Errorf("%s: %+v", tc.name, r)
		}
		if string(in) != tc.in {
			t.Errorf("%s: what came was changed", tc.name)
		}
	}
}

// What is sent is what a server makes of it: the library's servers in the other tests read it, too.
func TestHTTP3Request(t *testing.T) {
	for _, r := range []httpRequest{
		{http.MethodPost, "dns.example", "/dns-query", []byte("query")},
		{http.MethodGet, "dns.example:8443", "/dns-query?dns=AAAA", nil},
	} {
		b := r.appendHTTP3([]byte("before"))
		kind, block, rest, ok := nextFrame(b[len("before"):])
		if kind != frameHeaders || !ok {
			t.Fatalf("%q", b)
		}
		got := map[string]string{}
		for next := qpack.NewDecoder().Decode(block); ; {
			f, err := next()
			if err != nil {
				break
			}
			if f.IsPseudo() && len(got) >= 4 {
				t.Errorf("%s comes late", f.Name)
			}
			got[f.Name] = f.Value
		}
		if got[":method"] != r.method || got[":authority"] != r.host || got[":path"] != r.path || got[":scheme"] != "https" ||
			got["accept"] != doh.MimeType || got["content-type"] != doh.MimeType {
			t.Errorf("%v", got)
		}
		if r.body == nil {
			if _, has := got["content-length"]; has || len(rest) > 0 {
				t.Errorf("%v and %q", got, rest)
			}
			continue
		}
		if kind, body, rest, ok := nextFrame(rest); kind != frameData || string(body) != "query" || len(rest) > 0 || !ok || got["content-length"] != "5" {
			t.Errorf("%v and %q", got, body)
		}
	}
}

func TestFollow(t *testing.T) {
	for _, tc := range []struct {
		status         int
		to, host, path string // no host is none to go to
		method         string
	}{
		{307, "https://dns.example/other", "dns.example", "/other", "POST"},
		{308, "/other?a=b", "here.example:853", "/other?a=b", "POST"},
		{307, "other", "here.example:853", "/a/other", "POST"},
		{302, "https://dns.example/other?dns=AAAA", "dns.example", "/other?dns=AAAA", "GET"},
		{307, "//dns.example/x", "dns.example", "/x", "POST"},
		{307, "http://dns.example/other", "", "", ""},
		{307, "https:///other", "", "", ""},
		{307, "https://dns.example/\x7f", "", "", ""},
	} {
		r := httpRequest{http.MethodPost, "here.example:853", "/a/dns-query", []byte("query")}
		ok := r.follow(&httpResponse{status: tc.status, location: tc.to})
		if ok != (tc.host != "") || ok && (r.host != tc.host || r.path != tc.path || r.method != tc.method || (r.body == nil) != (tc.method == "GET")) {
			t.Errorf("%d %s: %v, %+v", tc.status, tc.to, ok, r)
		}
	}
}

// FuzzHTTP3Response has responses taken from anybody: there is an error or a whole one.
func FuzzHTTP3Response(f *testing.F) {
	ok := http3Header(":status", "200", "content-type", "text/html; charset="+strings.Repeat("x", 80))
	f.Add([]byte(ok + http3Frame(frameData, "reply")))
	f.Add([]byte(http3Header(":status", "103") + ok + http3Frame(frameData, "re") + http3Frame(0x21, "") + http3Frame(frameData, "ply") + http3Header("a", "b")))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := string(b)
		r, err := http3Response(b)
		if string(b) != before {
			t.Fatal("what came was changed")
		}
		if (r == nil) == (err == nil) || r != nil && (r.status < 200 || len(r.body) > len(b)) {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}
