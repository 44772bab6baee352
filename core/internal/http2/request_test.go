package http2

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/nonblock/acktest"
)

// What is too long is refused by the handler, and the connection goes on.
func TestRefusals(t *testing.T) {
	of := newSite()
	of.maxBody = 10
	s := serve(t, of, func(s *service.Service) { s.HeaderBytes = 500 })
	p := coretest.ConnectH2(t, s.addr)
	long := append(getting("/"), "accept", strings.Repeat("x", 400))
	p.Open(1, true, long...)
	if id, status, body := p.Reply(); id != 1 || status != "400" || string(body) != "long header" {
		t.Errorf("got %d %s %s", id, status, body)
	}
	// It is told that the rest is not wanted, whether it says at once or in its body how long that is.
	p.Open(3, false, append(posting("/"), "content-length", "11")...)
	if id, status, body := p.Reply(); id != 3 || status != "400" || string(body) != "long body" {
		t.Errorf("got %d %s %s", id, status, body)
	}
	if f := p.Until(); !resetWith(f, 3, http2.ErrCodeNo) {
		t.Errorf("got %v", f)
	}
	p.Open(5, false, posting("/")...)
	p.Framer.WriteData(5, false, []byte("0123456789x"))
	if id, status, body := p.Reply(); id != 5 || status != "400" || string(body) != "long body" {
		t.Errorf("got %d %s %s", id, status, body)
	}
	if f := p.Until(); !resetWith(f, 5, http2.ErrCodeNo) {
		t.Errorf("got %v", f)
	}
	p.Framer.WriteData(5, true, []byte("more")) // was on its way
	post(p, 7, "/", "0123456789")
	if got := answered(p); got != "7: 0123456789" {
		t.Errorf("got %s", got)
	}
	if n := len(of.seen); n != 1 {
		t.Errorf("the handler saw %v", of.seen)
	}
}

// Requests that are malformed have their streams reset, and others go on.
func TestStreamErrors(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	get := []string{":method", "GET", ":scheme", "https", ":path", "/20"}
	id := uint32(1)
	for name, fields := range map[string][]string{
		"no method":            get[2:],
		"no scheme":            {":method", "GET", ":path", "/"},
		"no path":              get[:4],
		"method twice":         append([]string{":method", "GET"}, get...),
		"unknown pseudo field": append([]string{":x", "y"}, get...),
		"pseudo field late":    append(append([]string{}, get...), "a", "b", ":authority", "c"),
		"upper case":           append(append([]string{}, get...), "Accept", "b"),
		"no name":              append(append([]string{}, get...), "", "b"),
		"connection":           append(append([]string{}, get...), "connection", "close"),
		"te":                   append(append([]string{}, get...), "te", "gzip"),
		"content-length":       append(append([]string{}, get...), "content-length", "5"),
		"bad content-length":   append(append([]string{}, get...), "content-length", "-5"),
		"signed length":        append(append([]string{}, get...), "content-length", "+0"),
		"two content-lengths":  append(append([]string{}, get...), "content-length", "0", "content-length", "1"),
		"line break":           append(append([]string{}, get...), "accept", "a\r\nb"),
		"line break in method": {":method", "PUT\n[ERROR] b", ":scheme", "https", ":path", "/20"},
		"line break in path":   {":method", "GET", ":scheme", "https", ":path", "/20\r\na: b"},
		"NUL in authority":     append([]string{":authority", "a\x00"}, get...),
	} {
		p.Open(id, true, fields...)
		if f := p.Until(); !resetWith(f, id, http2.ErrCodeProtocol) {
			t.Errorf("%s: got %v", name, f)
		}
		id += 2
	}
	for _, n := range []int{10, 1000} { // less and more than the body
		p.Open(id, false, append(posting("/"), "content-length", fmt.Sprint(n))...)
		p.Framer.WriteData(id, true, make([]byte, 100))
		if f := p.Until(); !resetWith(f, id, http2.ErrCodeProtocol) {
			t.Errorf("content-length %d: got %v", n, f)
		}
		id += 2
	}
	p.Open(id, false, append(posting("/"), "te", "trailers", "content-length", "3")...)
	p.Framer.WriteDataPadded(id, false, []byte("abc"), make([]byte, 100))
	p.Open(id, true, "trailer", "x") // trailers end the body, too
	if got, want := answered(p), fmt.Sprintf("%d: abc", id); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestClosedStreams has frames for streams that take none. Each is told in its own way whose fault that is (RFC 9113
// §5.1), and the connection goes on.
func TestClosedStreams(t *testing.T) {
	s := serve(t, newSite(), nil)
	const id = 1
	for name, tc := range map[string]struct {
		before, do func(p *coretest.H2)
		want       http2.ErrCode
	}{
		"DATA behind the end":       {answeredPost, moreData, http2.ErrCodeStreamClosed},
		"DATA while it is at work":  {waitingPost, moreData, http2.ErrCodeStreamClosed},
		"HEADERS while at work":     {waitingPost, func(p *coretest.H2) { p.Open(id, true, "trailer", "x") }, http2.ErrCodeStreamClosed},
		"DATA behind RST_STREAM":    {resetPost, moreData, http2.ErrCodeStreamClosed},
		"trailers without an end":   {openPost, func(p *coretest.H2) { p.Open(id, false, "trailer", "x") }, http2.ErrCodeProtocol},
		"trailers of a request":     {openPost, func(p *coretest.H2) { p.Open(id, true, ":path", "/") }, http2.ErrCodeProtocol},
		"trailers, body too short":  {func(p *coretest.H2) { p.Open(id, false, append(posting("/"), "content-length", "3")...) }, func(p *coretest.H2) { p.Open(id, true, "trailer", "x") }, http2.ErrCodeProtocol},
		"PRIORITY depends on it":    {openPost, func(p *coretest.H2) { p.Framer.WriteRawFrame(http2.FramePriority, 0, id, []byte{0, 0, 0, id, 1}) }, http2.ErrCodeProtocol},
		"GET whose end is missing":  {func(p *coretest.H2) { p.Open(id, false, getting("/1")...) }, func(p *coretest.H2) { p.Open(id, false, "trailer", "x") }, http2.ErrCodeProtocol},
		"a second END_STREAM":       {answeredPost, func(p *coretest.H2) { p.Framer.WriteData(id, true, nil) }, http2.ErrCodeStreamClosed},
		"DATA of a window too wide": {openPost, func(p *coretest.H2) { p.Framer.WriteWindowUpdate(id, maxWindow) }, http2.ErrCodeFlowControl},
	} {
		p := coretest.ConnectH2(t, s.addr)
		tc.before(p)
		tc.do(p)
		if f := p.Until(); !resetWith(f, id, tc.want) {
			t.Errorf("%s: got %v, want %v", name, f, tc.want)
		}
		// We have ended it now: what was on its way is passed over.
		p.Framer.WriteData(id, true, []byte("late"))
		p.Open(id, true, "trailer", "late")
		p.Open(id+2, true, getting("/2")...)
		if got := answered(p); got != "3: xx" {
			t.Errorf("%s: then got %s", name, got)
		}
		p.Conn.Close()
	}
}

func openPost(p *coretest.H2) { p.Open(1, false, posting("/")...) }

func moreData(p *coretest.H2) { p.Framer.WriteData(1, false, []byte("more")) }

func answeredPost(p *coretest.H2) {
	post(p, 1, "/", "a")
	answered(p)
}

func waitingPost(p *coretest.H2) { post(p, 1, "/later", "a") }

func resetPost(p *coretest.H2) {
	openPost(p)
	p.Framer.WriteRSTStream(1, http2.ErrCodeCancel)
}

// A request is answered when it has come whole, whatever its method.
func TestWholeRequests(t *testing.T) {
	p := coretest.ConnectH2(t, serve(t, newSite(), nil).addr)
	p.Open(1, false, getting("/2")...)
	p.Open(3, true, getting("/1")...)
	if got := answered(p); got != "3: x" {
		t.Errorf("got %s", got)
	}
	p.Framer.WriteData(1, true, nil)
	if got := answered(p); got != "1: xx" {
		t.Errorf("got %s", got)
	}
}

// A header and a body may come in pieces.
func TestPieces(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	block := p.Header(append(posting("/"), "accept", "everything")...)
	p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:3]})
	p.Framer.WriteContinuation(1, false, block[3:10])
	p.Framer.WriteContinuation(1, true, block[10:])
	for _, piece := range []string{"a", "", "bc"} {
		p.Framer.WriteData(1, false, []byte(piece))
	}
	post(p, 3, "/", "other") // in between
	if got := answered(p); got != "3: other" {
		t.Errorf("got %s", got)
	}
	p.Framer.WriteData(1, true, []byte("d"))
	if got := answered(p); got != "1: abcd" {
		t.Errorf("got %s", got)
	}
}

// A client whose body is not wanted gets the answer before it is told to stop sending (RFC 9113 §8.1): not in one
// piece, or it may look at the end of the stream alone.
func TestAnswerBeforeReset(t *testing.T) {
	p := coretest.ConnectH2(t, serve(t, newSite(), nil).addr)
	p.Open(1, false, append(posting("/"), "content-length", "70000")...)
	for _, want := range []string{"HEADERS DATA", "RST_STREAM"} {
		record := make([]byte, 4096) // Read returns one TLS record at most
		n, err := p.Conn.Read(record)
		if err != nil {
			t.Fatal(err)
		}
		frames, kinds := http2.NewFramer(nil, bytes.NewReader(record[:n])), []string(nil)
		for {
			f, err := frames.ReadFrame()
			if err != nil {
				break
			}
			kinds = append(kinds, f.Header().Type.String())
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Fatalf("got %s in one piece, want %s", got, want)
		}
	}
}

// What waits keeps its request, whatever comes after it; net/http's form of it tells the same.
func TestRequestIsKept(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	p.Open(1, false, append(posting("/later"), "accept", "a", "accept", "b")...)
	p.Framer.WriteData(1, true, []byte("abc"))
	r := <-s.waiting
	p.Open(3, true, append(getting("/20"), "accept", "c", "accept", "d")...)
	if got := answered(p); got != "3: "+strings.Repeat("x", 20) {
		t.Errorf("got %s", got)
	}
	if r.Method != "POST" || r.Path != "/later" || r.Scheme != "https" || r.Authority != "localhost" || r.Body != nil ||
		len(r.Fields) != 2 || r.Fields[1].Value != "b" {
		t.Errorf("kept %+v", r)
	}
	close(s.later)
	if got := answered(p); got != "1: abc" {
		t.Errorf("got %s", got)
	}
}

// A client that gathers small writes waits with the body until the header is acknowledged.
func TestClientsThatHoldBack(t *testing.T) {
	p := coretest.DialH2(t, serve(t, newSite(), nil).addr)
	p.Conn.(*tls.Conn).NetConn().(*net.TCPConn).SetNoDelay(false)
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings()
	id := uint32(1)
	post := func() {
		p.Post(id, []byte("body"))
		if _, _, body := p.Reply(); string(body) != "body" {
			t.Fatalf("got %q", body)
		}
		id += 2
	}
	for range 5 {
		post()
	}
	acktest.Prompt(t, nil, post)
}

// Clients that ask whether the body is wanted are told before they send it (RFC 9110 §10.1.1), and no others.
func TestExpectations(t *testing.T) {
	of := newSite()
	of.maxBody = 10
	p := coretest.ConnectH2(t, serve(t, of, nil).addr)
	for i, word := range []string{"100-continue", "100-Continue"} {
		id := uint32(1 + 2*i)
		p.Open(id, false, append(posting("/"), "expect", word)...)
		h, ok := p.Until().(*http2.MetaHeadersFrame)
		if !ok || h.StreamID != id || h.PseudoValue("status") != "100" || h.StreamEnded() || len(h.Fields) != 1 {
			t.Fatalf("%s: got %v", word, h)
		}
		p.Framer.WriteData(id, true, []byte("body"))
		if got, want := answered(p), fmt.Sprintf("%d: body", id); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
	p.Open(5, true, append(getting("/3"), "expect", "100-continue")...)
	if got := answered(p); got != "5: xxx" {
		t.Errorf("without a body: got %s", got)
	}
	p.Open(7, false, append(posting("/"), "expect", "100-continue", "content-length", "11")...)
	if id, status, body := p.Reply(); id != 7 || status != "400" || string(body) != "long body" {
		t.Errorf("a body that is too long: got %d %s %s", id, status, body)
	}
	if f := p.Until(); !resetWith(f, 7, http2.ErrCodeNo) {
		t.Errorf("got %v", f)
	}
	post(p, 9, "/", "plain")
	if got := answered(p); got != "9: plain" {
		t.Errorf("without an expectation: got %s", got)
	}
}

// The form of net/http has what handlers look at.
func TestHTTPRequest(t *testing.T) {
	of := newSite()
	s := serve(t, of, nil)
	p := coretest.ConnectH2(t, s.addr)
	requests := make(chan *http.Request, 1)
	of.look = func(v *visit, r *Request) {
		out, err := v.HTTPRequest(t.Context(), r, []byte("body"))
		if err != nil {
			t.Errorf("%s: %v", r.Path, err)
		}
		requests <- out
	}
	p.Open(1, true, append(getting("/a?b=c"), "accept", "a", "accept", "b")...)
	answered(p)
	r := <-requests
	if r.Host != "localhost" || r.URL.Path != "/a" || r.URL.RawQuery != "b=c" || r.RequestURI != "/a?b=c" || r.Method != "GET" ||
		r.ProtoMajor != 2 || r.TLS == nil || r.ContentLength != 4 || fmt.Sprint(r.Header["Accept"]) != "[a b]" {
		t.Errorf("got %+v", r)
	}
	if body, err := io.ReadAll(r.Body); string(body) != "body" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	if r.RemoteAddr != p.Conn.LocalAddr().String() {
		t.Errorf("from %s", r.RemoteAddr)
	}
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || a.String() != s.addr {
		t.Errorf("to %v", a)
	}
	p.Open(3, true, ":method", "GET", ":scheme", "https", ":path", "/", "host", "elsewhere")
	answered(p)
	if r := <-requests; r.Host != "elsewhere" {
		t.Errorf("host %s", r.Host)
	}
	of.look = func(v *visit, r *Request) {
		if _, err := v.HTTPRequest(t.Context(), r, nil); err == nil {
			t.Errorf("%s is a target", r.Path)
		}
	}
	p.Open(5, true, getting("no target")...)
	answered(p)
}
