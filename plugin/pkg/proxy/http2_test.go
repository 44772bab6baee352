package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Peer is the upstream's side of a connection of HTTP/2, for what no library does.
type http2Peer struct {
	*http2.Framer
	net.Conn
	dec     *hpack.Decoder
	fields  map[uint32][]hpack.HeaderField
	queries map[uint32][]byte
	frames  []http2.FrameHeader // that came
	pings   int                 // that were answered
	widened uint32              // by what the connection's window was
	resets  map[uint32]http2.ErrCode
}

// http2Upstream is a Proxy for an upstream whose n-th connection is served by serve, from the client's preface on.
func http2Upstream(t testing.TB, serve func(n int, u *http2Peer)) *Proxy {
	t.Helper()
	return overTLS(t, http2.NextProtoTLS, func(n int, c net.Conn) {
		if _, err := readFull(c, len(http2.ClientPreface)); err != nil {
			return
		}
		serve(n, &http2Peer{
			Framer: http2.NewFramer(c, c), Conn: c, dec: hpack.NewDecoder(4096, nil),
			fields: map[uint32][]hpack.HeaderField{}, queries: map[uint32][]byte{}, resets: map[uint32]http2.ErrCode{},
		})
	})
}

// overTLS is a Proxy for an upstream of HTTPS that speaks a protocol, whose n-th connection is served by serve.
func overTLS(t testing.TB, protocol string, serve func(n int, c net.Conn)) *Proxy {
	t.Helper()
	server, roots := authority(t)
	server = server.Clone()
	server.NextProtos = []string{protocol}
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { l.Close() })
	running.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			running.Go(func() {
				defer c.Close()
				serve(n, c)
			})
		}
	})
	p := proxyTo(t, l.Addr().String(), transport.HTTPS)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	return p
}

func readFull(c net.Conn, n int) ([]byte, error) {
	b := make([]byte, n)
	for at := 0; at < n; {
		k, err := c.Read(b[at:])
		if err != nil {
			return nil, err
		}
		at += k
	}
	return b, nil
}

// step reads a frame. It returns the stream of a query that is whole then, 0 if none is.
func (u *http2Peer) step() (stream uint32, err error) {
	f, err := u.ReadFrame()
	if err != nil {
		return 0, err
	}
	u.frames = append(u.frames, f.Header())
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			u.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if f.IsAck() {
			u.pings++
		}
	case *http2.WindowUpdateFrame:
		u.widened += f.Increment
	case *http2.RSTStreamFrame:
		u.resets[id] = f.ErrCode
	case *http2.HeadersFrame:
		block := slices.Clone(f.HeaderBlockFragment())
		ended := f.StreamEnded()
		for last := f.HeadersEnded(); !last; {
			more, err := u.ReadFrame()
			if err != nil {
				return 0, err
			}
			u.frames = append(u.frames, more.Header())
			c := more.(*http2.ContinuationFrame)
			block, last = append(block, c.HeaderBlockFragment()...), c.HeadersEnded()
		}
		if u.fields[id], err = u.dec.DecodeFull(block); err != nil {
			return 0, err
		}
		if ended {
			_, q, _ := strings.Cut(u.field(id, ":path"), "dns=")
			u.queries[id], _ = base64.RawURLEncoding.DecodeString(q)
			return id, nil
		}
	case *http2.DataFrame:
		if u.queries[id] = append(u.queries[id], f.Data()...); f.StreamEnded() {
			return id, nil
		}
	}
	return 0, nil
}

// query reads until there is a whole one, whose stream it returns; 0 at the connection's end.
func (u *http2Peer) query() uint32 {
	for {
		if id, err := u.step(); id != 0 || err != nil {
			return id
		}
	}
}

func (u *http2Peer) field(id uint32, name string) string {
	for _, f := range u.fields[id] {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// header writes the header of a response.
func (u *http2Peer) header(id uint32, end bool, fields ...string) {
	u.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: packFields(fields...), EndHeaders: true, EndStream: end})
}

func packFields(fields ...string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

func (u *http2Peer) answer(id uint32) {
	if id == 0 { // the connection has ended
		return
	}
	u.header(id, false, ":status", "200")
	u.WriteData(id, true, replyTo(u.queries[id]))
}

// What an upstream may do, and what becomes of a query then.
func TestHTTP2Upstreams(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(n int, u *http2Peer)
		err   string // "" for a reply
	}{
		"early hints, and what is behind the body": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.header(id, false, ":status", "103", "link", "x", "age", "7")
			u.header(id, false, ":status", "200", "content-type", "application/dns-message")
			u.WriteData(id, false, replyTo(u.queries[id]))
			u.header(id, true, "age", "9")
			u.query()
		}},
		"pieces and padding": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			block := packFields(":status", "200")
			u.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:0], PadLength: 9})
			u.WriteContinuation(id, true, block)
			for _, b := range replyTo(u.queries[id]) {
				u.WriteDataPadded(id, false, []byte{b}, make([]byte, 3))
			}
			u.WriteData(id, true, nil)
			u.query()
		}},
		"what is unknown": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings(http2.Setting{ID: 0x4242, Val: 1})
			u.WriteRawFrame(0x42, 0xFF, 0, []byte("hello"))
			u.WriteRawFrame(0x42, 0xFF, 7, []byte("hello"))
			u.WriteWindowUpdate(99, 1)
			u.WriteRSTStream(99, http2.ErrCodeCancel)
			u.answer(u.query())
			u.query()
		}},
		"a stream that is refused": {serve: func(n int, u *http2Peer) {
			u.WriteSettings()
			if id := u.query(); n == 1 {
				u.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			} else {
				u.answer(id)
			}
			u.query()
		}},
		"a page that is too long": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.header(id, false, ":status", "404", "content-type", "text/html")
			for range maxHTTPSReply/16000 + 1 {
				u.WriteData(id, false, make([]byte, 16000))
			}
			u.query()
		}, err: "status 404"},
		"a connection that takes no more": {serve: func(n int, u *http2Peer) {
			u.WriteSettings()
			if id := u.query(); n < 5 {
				u.WriteGoAway(0, http2.ErrCodeNo, nil)
			} else {
				u.answer(id)
			}
			if u.query() != 0 && n < 5 {
				t.Error("a query comes on a connection that takes no more")
			}
		}},
		"the last query of a connection": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			u.WriteGoAway(id, http2.ErrCodeNo, nil)
			u.answer(id)
			u.query()
		}},
		"a compressed reply": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			if u.field(id, "accept-encoding") != "gzip" {
				return
			}
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(replyTo(u.queries[id]))
			z.Close()
			u.header(id, false, ":status", "200", "content-encoding", "GZip")
			u.WriteData(id, true, b.Bytes())
			u.query()
		}},
		"a stream that is given up": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			u.WriteRSTStream(u.query(), http2.ErrCodeInternal)
			u.query()
		}, err: "INTERNAL_ERROR"},
		"no settings": {serve: func(_ int, u *http2Peer) {
			u.answer(u.query())
			u.query()
		}, err: "PROTOCOL_ERROR"},
		"a push": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: packFields(":method", "GET"), EndHeaders: true})
			u.answer(id)
			u.query()
		}, err: "PROTOCOL_ERROR"},
		"a broken header": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			u.WriteHeaders(http2.HeadersFrameParam{StreamID: u.query(), BlockFragment: []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}, EndHeaders: true})
			u.query()
		}, err: "COMPRESSION_ERROR"},
		"an endless header": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: packFields(":status", "200")})
			for u.WriteContinuation(id, false, packFields("x", strings.Repeat("\x00", 8000))) == nil {
			}
		}, err: "ENHANCE_YOUR_CALM"},
		"an endless header of nothing": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: packFields(":status", "200")})
			for u.WriteContinuation(id, false, nil) == nil {
			}
		}, err: "ENHANCE_YOUR_CALM"},
		"no status": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			u.header(u.query(), true, "content-type", "application/dns-message")
			u.query()
		}, err: "PROTOCOL_ERROR"},
		"a body before its header": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WriteData(id, true, replyTo(u.queries[id]))
			u.query()
		}, err: "PROTOCOL_ERROR"},
		"a window that overflows": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.WriteWindowUpdate(0, 1<<31-1)
			u.answer(id)
			u.query()
		}, err: "FLOW_CONTROL_ERROR"},
		"more than the window": {serve: func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			u.header(id, false, ":status", "200")
			for u.WriteDataPadded(id, false, nil, make([]byte, 255)) == nil {
			}
		}, err: "FLOW_CONTROL_ERROR"},
		"no HTTP/2": {serve: func(_ int, u *http2Peer) {
			u.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
			u.query()
		}, err: "frame"},
	} {
		t.Run(name, func(t *testing.T) {
			p := http2Upstream(t, tc.serve)
			m, err := ask(p, "www.example.org.", Options{})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || len(m.Answer) != 1 || m.Answer[0].Header().Ttl != 60 {
				t.Errorf("%v %v", m, err)
			}
		})
	}
}

// A query goes out as the windows allow, piece by piece, and no octet before.
func TestHTTP2SmallWindows(t *testing.T) {
	// settled reads until the client has answered a ping: what it had to send before has come then.
	settled := func(u *http2Peer) bool {
		u.WritePing(false, [8]byte{})
		for n := u.pings; u.pings == n; {
			if _, err := u.step(); err != nil {
				return false
			}
		}
		return true
	}
	const whole = 33
	for name, more := range map[string]func(u *http2Peer, id uint32, by int){
		"of the stream": func(u *http2Peer, id uint32, by int) { u.WriteWindowUpdate(id, uint32(by)) },
		"of all streams": func(u *http2Peer, id uint32, by int) {
			u.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(len(u.queries[id]) + by)})
		},
	} {
		pieces := make(chan int, 1)
		p := http2Upstream(t, func(_ int, u *http2Peer) {
			u.WriteSettings()
			first := u.query() // which comes before any settings
			u.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			u.answer(first)
			id := first + 2
			for u.fields[id] == nil {
				if _, err := u.step(); err != nil {
					return
				}
			}
			n := 0
			for allowed := 0; len(u.queries[id]) < whole; n++ {
				if !settled(u) {
					return
				}
				if got := len(u.queries[id]); got != min(allowed, whole) {
					t.Errorf("%s: %d octets where %d are allowed", name, got, allowed)
					return
				}
				more(u, id, 7)
				allowed += 7
				if allowed >= whole {
					u.query()
				}
			}
			pieces <- n
			u.answer(id)
			u.query()
		})
		for range 2 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(name, err)
			}
		}
		if n := <-pieces; n != 5 {
			t.Errorf("%s: %d pieces", name, n)
		}
	}
}

// The request for a query (RFC 8484 §4.1), of which the second one says the same in fewer octets.
func TestHTTP2Request(t *testing.T) {
	for method, want := range map[string]string{
		http.MethodPost: ":authority=dns.example.org :method=POST :path=/dns-query :scheme=https accept=application/dns-message " +
			"content-type=application/dns-message content-length=33 accept-encoding=gzip user-agent=Go-http-client/2.0",
		http.MethodGet: ":authority=dns.example.org :method=GET :path=/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB :scheme=https " +
			"accept=application/dns-message content-type=application/dns-message accept-encoding=gzip user-agent=Go-http-client/2.0",
	} {
		fields, sizes := make(chan string, 2), make(chan uint32, 2)
		p := http2Upstream(t, func(_ int, u *http2Peer) {
			u.WriteSettings()
			for id := u.query(); id != 0; id = u.query() {
				var all []string
				for _, f := range u.fields[id] {
					all = append(all, f.Name+"="+f.Value)
				}
				fields <- strings.Join(all, " ")
				for _, f := range u.frames {
					if f.Type == http2.FrameHeaders && f.StreamID == id {
						sizes <- f.Length
					}
				}
				u.answer(id)
			}
		})
		p.SetDOHRequestOptions(method)
		p.SetDOHHost("dns.example.org")
		for range 2 {
			if _, err := ask(p, "www.example.org.", Options{}); err != nil {
				t.Fatal(err)
			}
			if got := <-fields; got != want {
				t.Errorf("%s\n%s, want\n%s", method, got, want)
			}
		}
		if first, second := <-sizes, <-sizes; second > first/2 {
			t.Errorf("%s: headers of %d and %d octets", method, first, second)
		}
	}
}

// Long queries go out in frames of the size that the upstream takes.
func TestHTTP2LongQuery(t *testing.T) {
	query := packed.Message(t, "www.example.org.", 1)
	query[11] = 1
	query = append(query, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0x75, 0x34, 0, 12, 0x75, 0x30)
	query = append(query, make([]byte, 30000)...) // padding
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		kinds := make(chan []http2.FrameHeader, 1)
		p := http2Upstream(t, func(_ int, u *http2Peer) {
			u.WriteSettings()
			id := u.query()
			kinds <- u.frames
			u.answer(id)
			u.query()
		})
		p.SetDOHRequestOptions(method)
		ended := make(chan error, 1)
		p.Begin(&Exchange{Query: slices.Clone(query), Owner: enderFunc(func(x *Exchange) { ended <- x.Err })})
		if err := <-ended; err != nil {
			t.Fatal(method, err)
		}
		n := 0
		for _, f := range <-kinds {
			if f.Length > leastFrame {
				t.Errorf("%s: a frame of %d octets", method, f.Length)
			}
			if f.Type == http2.FrameContinuation || f.Type == http2.FrameData {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s: the query is not in pieces", method)
		}
	}
}

// A query that is refused goes out again, though nothing else is under way that could have it do so.
func TestHTTP2RefusedAlone(t *testing.T) {
	p := http2Upstream(t, func(_ int, u *http2Peer) {
		u.WriteSettings()
		for n := 1; ; n++ {
			id := u.query()
			if id == 0 {
				return
			}
			if n == 2 {
				u.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			} else {
				u.answer(id)
			}
		}
	})
	for range 2 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A stream on which one side goes on when there is a response is given up, and does not stay open at the upstream.
func TestHTTP2OneSideGoesOn(t *testing.T) {
	for name, respond := range map[string]func(w *http2.Framer){
		"the query is not sent whole": func(w *http2.Framer) {
			w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: packFields(":status", "404"), EndHeaders: true, EndStream: true})
		},
		"the page is long": func(w *http2.Framer) {
			w.WriteWindowUpdate(1, 1000)
			w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: packFields(":status", "404"), EndHeaders: true})
			for range maxHTTPSReply/16000 + 1 {
				w.WriteData(1, false, make([]byte, 16000))
			}
		},
	} {
		p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
		e := &p.engine
		near, far := net.Pipe()
		c := newHTTPConn(&e.https, e.now()) // without a writer
		h := newHTTP2(c)
		h.initial = 0
		e.mu.Lock()
		c.conn, c.local, c.open, c.speaks = near, near.LocalAddr(), true, h
		e.https.conns = append(e.https.conns, c)
		e.mu.Unlock()
		ended := make(chan error, 1)
		p.Begin(&Exchange{Query: packedQuery("www.example.org."), Owner: enderFunc(func(x *Exchange) { ended <- x.Err }), Timeout: time.Minute})
		go func() {
			w := http2.NewFramer(far, nil)
			w.WriteSettings()
			respond(w)
			far.Close()
		}()
		c.lost(c.read(near))
		near.Close()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "status 404") {
			t.Errorf("%s: %v", name, err)
		}
		reset := false
		for r := http2.NewFramer(nil, bytes.NewReader(c.out)); ; {
			f, err := r.ReadFrame()
			if err != nil {
				break
			}
			if f, ok := f.(*http2.RSTStreamFrame); ok {
				reset = f.StreamID == 1 && f.ErrCode == http2.ErrCodeCancel
			}
		}
		if !reset {
			t.Errorf("%s: the stream stays open", name)
		}
	}
}

// A connection that takes no more has its last query answered, and the next one goes out on another one.
func TestHTTP2LastQuery(t *testing.T) {
	gone, release := make(chan struct{}), make(chan struct{})
	p := http2Upstream(t, func(n int, u *http2Peer) {
		u.WriteSettings()
		id := u.query()
		if n == 1 {
			u.WriteGoAway(id, http2.ErrCodeNo, nil)
			u.WritePing(false, [8]byte{})
			for u.pings == 0 {
				if other, err := u.step(); other != 0 || err != nil {
					t.Error("another query:", other, err)
				}
			}
			close(gone)
			<-release
		}
		u.answer(id)
		if u.query() != 0 && n == 1 {
			t.Error("a query comes on a connection that takes no more")
		}
	})
	last := make(chan error, 1)
	go func() {
		_, err := ask(p, "www.example.org.", Options{})
		last <- err
	}()
	<-gone
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-last; err != nil {
		t.Error(err)
	}
}

// A query that is given up is given up at the upstream, too, and its connection goes on with others.
func TestHTTP2GivesUp(t *testing.T) {
	came, reset := make(chan struct{}), make(chan http2.ErrCode, 1)
	p := http2Upstream(t, func(n int, u *http2Peer) {
		u.WriteSettings()
		id := u.query()
		close(came)
		for len(u.resets) == 0 {
			u.step()
		}
		reset <- u.resets[id]
		u.answer(id) // too late
		u.answer(u.query())
		u.query()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := askCtx(ctx, p, "www.example.org.", Options{})
		ended <- err
	}()
	<-came
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if code := <-reset; code != http2.ErrCodeCancel {
		t.Error(code)
	}
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Error(err)
	}
}

// However much comes, the upstream is told that more may come, and pings are answered.
func TestHTTP2Windows(t *testing.T) {
	if testing.Short() {
		t.Skip("many long replies")
	}
	const all = ourWindow/60000 + 20
	widened := make(chan uint32, 5)
	p := http2Upstream(t, func(_ int, u *http2Peer) {
		u.WriteSettings()
		sent := 0
		for n := 1; ; n++ {
			id := u.query()
			if id == 0 {
				return
			}
			b := replyTo(u.queries[id])
			b[11] = 1
			b = append(b, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0xEA, 0x64, 0, 12, 0xEA, 0x60)
			b = append(b, make([]byte, 60000)...)
			for sent += len(b); sent > firstWindow+int(u.widened) && u.widened > 0; {
				if _, err := u.step(); err != nil { // else it would be too much
					return
				}
			}
			u.WritePing(false, [8]byte{1})
			u.header(id, false, ":status", "200")
			for ; len(b) > 16000; b = b[16000:] {
				u.WriteData(id, false, b[:16000])
			}
			u.WriteData(id, true, b)
			if n == all {
				for u.pings < all {
					if _, err := u.step(); err != nil {
						return
					}
				}
				widened <- u.widened
			}
		}
	})
	p.SetReadTimeout(time.Minute)
	for asked := 0; asked < 5*all; asked++ { // under load another connection may be opened, and begin anew
		select {
		case n := <-widened:
			if n < ourWindow {
				t.Errorf("the window grew by %d", n)
			}
			return
		default:
		}
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no connection had all that it was asked for")
}

// An upstream that has its pings answered, and does not read, is left.
func TestHTTP2Pesters(t *testing.T) {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	w.WriteSettings()
	for b.Len() < maxUnwritten+1000 {
		w.WritePing(false, [8]byte{})
	}
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	near, far := net.Pipe()
	defer far.Close()
	defer near.Close()
	go far.Write(b.Bytes())
	c := newHTTPConn(&p.engine.https, 0) // without a writer
	c.conn, c.local, c.open = near, near.LocalAddr(), true
	c.speaks = newHTTP2(c)
	if err := c.read(near); !errors.Is(err, errPesters) {
		t.Error(err)
	}
}

// Where each connection has so many queries at one time, there are more connections for more, and none gets more than
// it takes.
func TestHTTP2FewStreams(t *testing.T) {
	const few = 2
	var conns, beyond atomic.Int64
	p := http2Upstream(t, func(n int, u *http2Peer) {
		conns.Store(int64(n))
		u.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: few})
		var mu sync.Mutex
		under := 0
		for {
			id, err := u.step()
			if err != nil {
				return
			}
			if id == 0 {
				continue
			}
			mu.Lock()
			if under++; under > few {
				beyond.Add(1)
			}
			mu.Unlock()
			time.AfterFunc(5*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				under--
				u.header(id, true, ":status", "204")
			})
		}
	})
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || !strings.Contains(err.Error(), "status 204") {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := ask(p, "www.example.org.", Options{}); err == nil || !strings.Contains(err.Error(), "status 204") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := conns.Load(); n < 2 || n > 20 || beyond.Load() > 0 {
		t.Errorf("%d connections, %d too many", n, beyond.Load())
	}
}

// Where an upstream refuses what is more than it takes at one time, and has not told how many that are, fewer go out, and
// more with each answer.
func TestHTTP2RefusesMore(t *testing.T) {
	var refused, conns atomic.Int64
	p := http2Upstream(t, func(n int, u *http2Peer) {
		conns.Store(int64(n))
		u.WriteSettings()
		var mu sync.Mutex
		busy := false
		for {
			id, err := u.step()
			if err != nil {
				return
			}
			if id == 0 {
				continue
			}
			mu.Lock()
			if busy {
				refused.Add(1)
				u.WriteRSTStream(id, http2.ErrCodeRefusedStream)
				mu.Unlock()
				continue
			}
			busy = true
			mu.Unlock()
			time.AfterFunc(30*time.Millisecond, func() {
				mu.Lock()
				defer mu.Unlock()
				busy = false
				u.answer(id)
			})
		}
	})
	const all = 10
	askMany(t, p, all)
	if n := refused.Load(); n == 0 || n > 5*all {
		t.Errorf("%d were refused", n)
	}
	for range 5 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	}
	p.engine.mu.Lock()
	defer p.engine.mu.Unlock()
	most := 0
	for _, c := range p.engine.https.conns {
		most = max(most, c.speaks.(*httpVersion2).fewer)
	}
	if most < 3 {
		t.Errorf("%d at one time after answers", most)
	}
}

// Whatever comes on a connection, the reader comes to an end, and so does the query.
func FuzzHTTP2(f *testing.F) {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	w.WriteWindowUpdate(1, 10)
	w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: packFields(":status", "200", "age", "1"), EndHeaders: true})
	w.WriteData(1, true, replyTo(packedQuery("www.example.org.")))
	w.WriteRSTStream(3, http2.ErrCodeRefusedStream)
	w.WriteGoAway(3, http2.ErrCodeNo, nil)
	w.WritePing(false, [8]byte{})
	f.Add(b.Bytes())
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzHTTP(t, b, func(c *httpConn) httpProtocol { return newHTTP2(c) })
	})
}

// fuzzHTTP has three queries go out on a connection, on which b comes.
func fuzzHTTP(t *testing.T, b []byte, speak func(*httpConn) httpProtocol) {
	p := NewProxy("test", "127.0.0.1:1", transport.HTTPS)
	defer p.Stop()
	e := &p.engine
	near, far := net.Pipe()
	go func() {
		far.Write(b)
		far.Close()
	}()
	c := newHTTPConn(&e.https, e.now())
	ended := make(chan error, 3)
	e.mu.Lock()
	c.conn, c.local, c.open = near, near.LocalAddr(), true
	c.speaks = speak(c)
	e.https.conns = append(e.https.conns, c)
	c.speaks.begin()
	e.mu.Unlock()
	for range cap(ended) {
		p.Begin(&Exchange{Query: packedQuery("www.example.org."), Owner: enderFunc(func(x *Exchange) { ended <- x.Err }), Timeout: time.Minute})
	}
	c.lost(c.read(near))
	near.Close()
	p.Stop()
	for range cap(ended) {
		<-ended
	}
}

// The asynchronous heart over HTTP/2, with 64 queries under way. The upstream's side is in the figures, too.
func BenchmarkBeginHTTPS(b *testing.B) {
	p := http2Upstream(b, func(_ int, u *http2Peer) {
		u.SetReuseFrames()
		u.WriteSettings()
		u.WriteWindowUpdate(0, 1<<30)
		header := packFields(":status", "200")
		var query []byte
		for {
			f, err := u.ReadFrame()
			if err != nil {
				return
			}
			d, ok := f.(*http2.DataFrame)
			if !ok {
				continue
			}
			query = append(append(query[:0], d.Data()...), 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1)
			query[2] |= 0x80
			query[7] = 1
			u.WriteHeaders(http2.HeadersFrameParam{StreamID: d.StreamID, BlockFragment: header, EndHeaders: true})
			u.WriteData(d.StreamID, true, query)
		}
	})
	beginMany(b, p)
}
