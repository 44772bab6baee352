package http2

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coredns/coredns/core/internal/coretest"
)

// fieldsOf decodes a HEADERS frame with other means than it was made with.
func fieldsOf(t *testing.T, b []byte, id uint32, ended bool) map[string]string {
	t.Helper()
	f, err := http2.NewFramer(nil, bytes.NewReader(b)).ReadFrame()
	h, ok := f.(*http2.HeadersFrame)
	if err != nil || !ok || h.StreamID != id || !h.HeadersEnded() || h.StreamEnded() != ended {
		t.Fatalf("got %v, %v", f, err)
	}
	fields, err := hpack.NewDecoder(4096, nil).DecodeFull(h.HeaderBlockFragment())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range fields {
		got[f.Name] = f.Value
	}
	return got
}

func TestResponseFields(t *testing.T) {
	for _, a := range []Response{
		{Status: 200, ContentType: "application/dns-message", MaxAge: 3600, Body: make([]byte, 65535)},
		{Status: 200, ContentType: "application/dns-message", MaxAge: 0, Body: []byte("x")},
		{Status: 200, ContentType: "text/plain", MaxAge: -1},
		{Status: 400, ContentType: "text/plain; charset=utf-8", MaxAge: -1, Body: []byte("no\n")},
		{Status: 404, ContentType: "text/plain; charset=utf-8", MaxAge: -1, Body: []byte("\n")},
		{Status: 500, ContentType: "text/plain; charset=utf-8", MaxAge: -1, Body: []byte("no\n")},
		{Status: 431, ContentType: "text/plain; charset=utf-8", MaxAge: -1, Body: []byte("no\n")},
		{Status: 503, ContentType: "text/plain; charset=utf-8", MaxAge: -1, Body: []byte("no\n"), NoBody: true},
	} {
		got := fieldsOf(t, new(Conn).appendResponse(nil, 5, a), 5, a.NoBody || len(a.Body) == 0)
		date, err := time.Parse(time.RFC1123, got["date"])
		if err != nil || time.Since(date).Abs() > time.Minute {
			t.Errorf("%d: date %q", a.Status, got["date"])
		}
		delete(got, "date")
		want := map[string]string{
			":status": fmt.Sprint(a.Status), "content-length": fmt.Sprint(len(a.Body)), "content-type": a.ContentType,
		}
		if a.MaxAge >= 0 {
			want["cache-control"] = fmt.Sprintf("max-age=%d", a.MaxAge)
		}
		if a.Status != 200 {
			want["x-content-type-options"] = "nosniff"
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// The length of a body that does not come is told; an empty one ends its stream, too.
func TestNoBody(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	p.Open(1, true, getting("/head")...)
	h, ok := p.Until().(*http2.MetaHeadersFrame)
	if !ok || !h.StreamEnded() {
		t.Fatalf("got %v", h)
	}
	for _, f := range h.RegularFields() {
		if f.Name == "content-length" && f.Value != "3" {
			t.Errorf("got %v", f)
		}
	}
	p.Open(3, true, getting("/0")...)
	if got := answered(p); got != "3: " {
		t.Errorf("got %s", got)
	}
	p.Open(5, true, getting("/1")...)
	if got := answered(p); got != "5: x" {
		t.Errorf("got %s", got)
	}
}

// A long body goes in frames that everybody takes; answers that are enough for a write go out before the reader waits.
func TestLongBodies(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
	p.Framer.WriteWindowUpdate(0, 1<<20)
	p.Open(1, true, getting("/40000")...)
	readHead(t, p, 1)
	for i, n := range []int{frameSize, frameSize, 40000 - 2*frameSize} {
		if ends := data(t, p, 1, n); ends != (i == 2) {
			t.Errorf("frame %d ends the body: %v", i, ends)
		}
	}
}

// What is said of a frame reads what other implementations write.
func TestFrames(t *testing.T) {
	for want, b := range map[string][]byte{
		"SETTINGS":      appendSettings(nil, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20000}),
		"WINDOW_UPDATE": appendWindowUpdate(nil, 3, 70000),
		"RST_STREAM":    appendReset(nil, 3, http2.ErrCodeCancel),
		"GOAWAY":        appendGoAway(nil, 7, http2.ErrCodeEnhanceYourCalm),
	} {
		f, err := http2.NewFramer(nil, bytes.NewReader(b)).ReadFrame()
		if err != nil || f.Header().Type.String() != want {
			t.Errorf("%s: got %v, %v", want, f, err)
			continue
		}
		ok := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			n, _ := f.Value(http2.SettingMaxFrameSize)
			ok = n == 20000
		case *http2.WindowUpdateFrame:
			ok = f.StreamID == 3 && f.Increment == 70000
		case *http2.RSTStreamFrame:
			ok = f.StreamID == 3 && f.ErrCode == http2.ErrCodeCancel
		case *http2.GoAwayFrame:
			ok = f.LastStreamID == 7 && f.ErrCode == http2.ErrCodeEnhanceYourCalm
		}
		if !ok {
			t.Errorf("got %v", f)
		}
	}
}

// Making a response costs no memory.
func TestResponseDoesNotAllocate(t *testing.T) {
	a, buf := Response{Status: 200, ContentType: "application/dns-message", MaxAge: 300, Body: make([]byte, 50)}, make([]byte, 0, 1024)
	c := new(Conn)
	httpDate() // once a second it does
	least := 1.0
	for range 5 { // a new second may begin
		least = min(least, testing.AllocsPerRun(100, func() { c.appendResponse(buf, 1, a) }))
	}
	if least >= 1 {
		t.Errorf("%v allocations", least)
	}
}

func BenchmarkResponse(b *testing.B) {
	a, buf := Response{Status: 200, ContentType: "application/dns-message", MaxAge: 300, Body: make([]byte, 50)}, make([]byte, 0, 1024)
	c := new(Conn)
	b.ReportAllocs()
	for b.Loop() {
		c.appendResponse(buf, 1, a)
	}
}

// Responses that go out together have TLS records of their own.
func TestRecordEach(t *testing.T) {
	p := coretest.ConnectH2(t, serve(t, newSite(), nil).addr)
	var all bytes.Buffer
	f := http2.NewFramer(&all, nil)
	const n = 20
	for i := range n {
		f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: p.Header(getting("/5")...), EndHeaders: true, EndStream: true,
		})
	}
	p.Conn.Write(all.Bytes())
	for i := range n {
		b := make([]byte, 1<<16)
		k, err := p.Conn.Read(b) // of one record
		if err != nil || k < 4 || b[3] != byte(http2.FrameHeaders) || responseEnd(b[:k]) != k {
			t.Fatalf("record %d: %d octets, %v, % x", i, k, err, b[:k])
		}
	}
}

// A response ends where the next header begins: other frames go with what they stand behind.
func TestResponseEnd(t *testing.T) {
	c := new(Conn)
	one := appendFrameHead(appendFrameHead(c.appendResponse(nil, 1, Response{Status: 200, Body: []byte("x")}), 0, http2.FrameData, 0, 1),
		0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	for _, b := range [][]byte{one, slices.Concat(one, one), c.appendContinue(slices.Clone(one), 3)} {
		if n := responseEnd(b); n != len(one) {
			t.Errorf("%d octets of %d, want %d", n, len(b), len(one))
		}
	}
	if b := appendFrameHead(nil, 0, http2.FrameSettings, 0, 0); responseEnd(append(b, one...)) != len(b) {
		t.Error("a header does not begin a record")
	}
}
