package dnsserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coredns/coredns/test/clients"
)

// h2Peer speaks HTTP/2 frame by frame.
type h2Peer struct {
	*testing.T
	conn   net.Conn
	framer *http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
}

// rawH2 connects to a server; the prefaces have been exchanged.
func rawH2(t *testing.T, addr string, settings ...http2.Setting) *h2Peer {
	t.Helper()
	p := unspokenH2(t, addr)
	io.WriteString(p.conn, http2.ClientPreface)
	p.framer.WriteSettings(settings...)
	p.framer.WriteSettingsAck()
	for range 3 { // SETTINGS, WINDOW_UPDATE, and the acknowledgement
		p.read()
	}
	return p
}

func unspokenH2(t *testing.T, addr string) *h2Peer {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(clients.AskTime))
	t.Cleanup(func() { conn.Close() })
	p := &h2Peer{T: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.enc = hpack.NewEncoder(&p.block)
	return p
}

func (p *h2Peer) read() http2.Frame {
	p.Helper()
	f, err := p.framer.ReadFrame()
	if err != nil {
		p.Fatalf("reading a frame: %v", err)
	}
	return f
}

// header is a header block of the fields given, name and value in turn.
func (p *h2Peer) header(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

func (p *h2Peer) open(id uint32, ended bool, fields ...string) {
	p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.header(fields...), EndHeaders: true, EndStream: ended})
}

func postFields(more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "https", ":authority", "localhost", ":path", "/dns-query"}, more...)
}

// post asks for a name.
func (p *h2Peer) post(id uint32, name string) {
	p.open(id, false, postFields()...)
	p.framer.WriteData(id, true, packed(p, query(name)))
}

// until reads frames until one of another kind than those which carry nothing.
func (p *h2Peer) until() http2.Frame {
	p.Helper()
	for {
		switch f := p.read().(type) {
		case *http2.WindowUpdateFrame:
		case *http2.SettingsFrame:
		default:
			return f
		}
	}
}

// reply reads a whole response: its status, and what its body holds.
func (p *h2Peer) reply() (id uint32, status string, m *dns.Msg) {
	p.Helper()
	h, ok := p.until().(*http2.MetaHeadersFrame)
	if !ok {
		p.Fatal("no HEADERS frame")
	}
	var body []byte
	for !h.StreamEnded() {
		d, ok := p.until().(*http2.DataFrame)
		if !ok || d.StreamID != h.StreamID {
			p.Fatal("no DATA frame of the stream")
		}
		body = append(body, d.Data()...)
		if d.StreamEnded() {
			break
		}
	}
	m = new(dns.Msg)
	if m.Unpack(body) != nil {
		m = nil
	}
	return h.StreamID, h.PseudoValue("status"), m
}

// ended reads until the connection ends, and returns the code of the GOAWAY frame.
func (p *h2Peer) ended() string {
	code := "no GOAWAY"
	for {
		f, err := p.framer.ReadFrame()
		if err != nil {
			var nerr net.Error
			if errors.As(err, &nerr) && nerr.Timeout() {
				return "the connection goes on"
			}
			return code
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			code = g.ErrCode.String()
		}
	}
}

func h2Server(t *testing.T, change func(*Config)) *served {
	cfg := blockFor(t, "https", new(laneHandler))
	if change != nil {
		change(cfg)
	}
	return serving(t, cfg)
}

// TestH2Errors has clients that do what they must not: the connection or the stream ends with the right code.
func TestH2Errors(t *testing.T) {
	s := h2Server(t, nil)
	quick := h2Server(t, func(c *Config) { c.ReadTimeout, c.IdleTimeout = 200*time.Millisecond, 200*time.Millisecond })
	big := strings.Repeat("x", 40000)
	for name, tc := range map[string]struct {
		do   func(p *h2Peer)
		want string
	}{
		"even stream":         {func(p *h2Peer) { p.open(2, true, postFields()...) }, "PROTOCOL_ERROR"},
		"stream 0":            {func(p *h2Peer) { p.conn.Write([]byte("\x00\x00\x00\x01\x05\x00\x00\x00\x00")) }, "PROTOCOL_ERROR"},
		"DATA of no stream":   {func(p *h2Peer) { p.framer.WriteData(1, true, nil) }, "PROTOCOL_ERROR"},
		"WINDOW_UPDATE of 0":  {func(p *h2Peer) { p.framer.AllowIllegalWrites = true; p.framer.WriteWindowUpdate(0, 0) }, "PROTOCOL_ERROR"},
		"WINDOW_UPDATE early": {func(p *h2Peer) { p.framer.WriteWindowUpdate(7, 1) }, "PROTOCOL_ERROR"},
		"window too wide":     {func(p *h2Peer) { p.framer.WriteWindowUpdate(0, 1<<31-1) }, "FLOW_CONTROL_ERROR"},
		"bad SETTINGS":        {func(p *h2Peer) { p.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 2}) }, "PROTOCOL_ERROR"},
		"initial window": {func(p *h2Peer) {
			p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}, "FLOW_CONTROL_ERROR"},
		"PUSH_PROMISE": {func(p *h2Peer) {
			p.framer.AllowIllegalWrites = true
			p.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, "PROTOCOL_ERROR"},
		"stray CONTINUATION": {func(p *h2Peer) { p.framer.WriteContinuation(1, true, nil) }, "PROTOCOL_ERROR"},
		"frame too long":     {func(p *h2Peer) { p.framer.WriteData(1, true, []byte(big)) }, "FRAME_SIZE_ERROR"},
		"PING of 7 octets":   {func(p *h2Peer) { p.framer.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 7)) }, "FRAME_SIZE_ERROR"},
		"bad header block": {func(p *h2Peer) {
			p.framer.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0xFF})
		}, "COMPRESSION_ERROR"},
		"cut header block": {func(p *h2Peer) {
			p.framer.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, []byte{0x40, 5, 'a'})
		}, "COMPRESSION_ERROR"},
		"depends on itself": {func(p *h2Peer) {
			p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.header(), EndHeaders: true, Priority: http2.PriorityParam{StreamDep: 1, Weight: 1}})
		}, "PROTOCOL_ERROR"},
		"too much DATA":        {func(p *h2Peer) { floodData(p) }, "FLOW_CONTROL_ERROR"},
		"CONTINUATION flood":   {func(p *h2Peer) { floodContinuation(p) }, "ENHANCE_YOUR_CALM"},
		"PING flood":           {func(p *h2Peer) { go floodPings(p) }, "ENHANCE_YOUR_CALM"},
		"header of one string": {func(p *h2Peer) { longString(p) }, "ENHANCE_YOUR_CALM"},
	} {
		p := rawH2(t, s.addr)
		tc.do(p)
		if got := p.ended(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		p.conn.Close()
	}
	for name, octets := range map[string]string{"nothing": "", "a frame's begin": "\x00\x00\x08\x06"} {
		p := rawH2(t, quick.addr)
		io.WriteString(p.conn, octets)
		if got := p.ended(); got != "NO_ERROR" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	for name, preface := range map[string]string{"HTTP/1.1": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "no SETTINGS": http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"} {
		p := unspokenH2(t, s.addr)
		io.WriteString(p.conn, preface)
		if got := p.ended(); got != "PROTOCOL_ERROR" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	p := unspokenH2(t, quick.addr)
	io.WriteString(p.conn, http2.ClientPreface[:10])
	before := limitedTo(quick, "read_time")
	if p.ended(); limitedTo(quick, "read_time") != before+1 {
		t.Errorf("half a preface: not counted")
	}
}

// floodData sends more than the connection's window in bodies that do not end.
func floodData(p *h2Peer) {
	chunk := make([]byte, h2FrameSize)
	for id := uint32(1); id < 40; id += 2 {
		p.open(id, false, postFields()...)
		for range 3 {
			p.framer.WriteData(id, false, chunk)
		}
	}
}

func floodContinuation(p *h2Peer) {
	p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.header(postFields()...)})
	for range 100 {
		p.framer.WriteContinuation(1, false, nil)
	}
}

func floodPings(p *h2Peer) {
	for range h2MaxIdles + 10 {
		if p.framer.WritePing(false, [8]byte{}) != nil {
			return
		}
	}
}

func longString(p *h2Peer) {
	block := append([]byte{0x40, 1, 'a', 0x7F}, 0x80, 0x80, 0x80, 0x01) // a value of 2 MiB
	p.framer.WriteRawFrame(http2.FrameHeaders, 0, 1, block)
	for range 20 {
		p.framer.WriteContinuation(1, false, bytes.Repeat([]byte("x"), h2FrameSize))
	}
}

// TestH2StreamErrors has requests that are malformed: their streams are reset, and others go on.
func TestH2StreamErrors(t *testing.T) {
	s := h2Server(t, nil)
	p := rawH2(t, s.addr)
	get := []string{":method", "GET", ":scheme", "https", ":path", "/dns-query?dns=AAAA"}
	id := uint32(1)
	for name, fields := range map[string][]string{
		"no method":            get[2:],
		"no scheme":            {":method", "GET", ":path", "/"},
		"no path":              get[:4],
		"method twice":         append([]string{":method", "GET"}, get...),
		"unknown pseudo field": append([]string{":x", "y"}, get...),
		"pseudo field late":    append(append([]string{}, get...), "a", "b", ":authority", "c"),
		"upper case":           append(append([]string{}, get...), "Accept", "b"),
		"connection":           append(append([]string{}, get...), "connection", "close"),
		"te":                   append(append([]string{}, get...), "te", "gzip"),
		"content-length":       append(append([]string{}, get...), "content-length", "5"),
		"bad content-length":   append(append([]string{}, get...), "content-length", "-5"),
		"line break":           append(append([]string{}, get...), "accept", "a\r\nb"),
	} {
		p.open(id, true, fields...)
		if f, ok := p.until().(*http2.RSTStreamFrame); !ok || f.StreamID != id || f.ErrCode != http2.ErrCodeProtocol {
			t.Errorf("%s: got %v", name, f)
		}
		id += 2
	}
	for _, n := range []int{10, 1000} { // less and more than the body
		p.open(id, false, postFields("content-length", fmt.Sprint(n))...)
		p.framer.WriteData(id, true, packed(t, query(strings.Repeat("a.", 20))))
		if f, ok := p.until().(*http2.RSTStreamFrame); !ok || f.StreamID != id || f.ErrCode != http2.ErrCodeProtocol {
			t.Errorf("content-length %d: got %v", n, f)
		}
		id += 2
	}
	p.open(id, false, postFields("te", "trailers")...)
	p.framer.WriteDataPadded(id, false, packed(t, query("www.")), make([]byte, 100))
	p.open(id, true, "trailer", "x") // trailers end the body, too
	if got, status, m := p.reply(); got != id || status != "200" || len(m.Answer) != 1 {
		t.Errorf("got %d %s %v", got, status, m)
	}
}

// A client whose body is not wanted gets the answer before it is told to stop sending (RFC 9113 §8.1): not in one piece, or it may
// look at the end of the stream alone.
func TestH2AnswerBeforeReset(t *testing.T) {
	p := rawH2(t, h2Server(t, nil).addr)
	p.open(1, false, postFields("content-length", "70000")...)
	for _, want := range []string{"HEADERS DATA", "RST_STREAM"} {
		record := make([]byte, 4096) // Read returns one TLS record at most
		n, err := p.conn.Read(record)
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

func TestH2ResponseFields(t *testing.T) {
	for _, a := range []httpAnswer{httpReply(packed(t, query("www."))), httpNotFound, httpBad, httpTooLong, httpNoReply, httpCrowded} {
		b := appendResponse(nil, 5, a)
		f, err := http2.NewFramer(nil, bytes.NewReader(b)).ReadFrame()
		h, ok := f.(*http2.HeadersFrame)
		if err != nil || !ok || h.StreamID != 5 || !h.HeadersEnded() || h.StreamEnded() {
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
		if got[":status"] != fmt.Sprint(a.status) || got["content-length"] != fmt.Sprint(len(a.body)) || got["date"] == "" {
			t.Errorf("got %v", got)
		}
	}
}

func BenchmarkH2Response(b *testing.B) {
	m := query("www.")
	rr, _ := dns.NewRR("www. 300 IN A 192.0.2.1")
	m.Answer = []dns.RR{rr}
	a, buf := httpReply(packed(b, m)), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		appendResponse(buf, 1, a)
	}
}

// FuzzH2 has clients that send anything behind the preface: the connection ends, and nothing is left.
func FuzzH2(f *testing.F) {
	cfg := block1(".", new(laneHandler))
	cfg.Transport = "https"
	sh, err := NewServerHTTPS("https://fuzz", []*Config{cfg})
	if err != nil {
		f.Fatal(err)
	}
	sh.ReadTimeout = 50 * time.Millisecond
	var frames bytes.Buffer
	p := &h2Peer{framer: http2.NewFramer(&frames, nil)}
	p.enc = hpack.NewEncoder(&p.block)
	p.framer.WriteSettings()
	p.open(1, false, postFields()...)
	p.framer.WriteData(1, true, packed(f, query("www.")))
	p.open(3, true, ":method", "GET", ":scheme", "https", ":path", "/dns-query?dns=AAAA")
	p.framer.WriteWindowUpdate(0, 100)
	p.framer.WritePing(false, [8]byte{})
	f.Add(frames.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, theirs := net.Pipe()
		tr := newStreamTransport(sh.Server, clientAuth{})
		c := new(httpsConn)
		c.open(tr, ours, nil, func() {})
		go io.Copy(io.Discard, theirs)
		go func() {
			theirs.SetWriteDeadline(time.Now().Add(time.Second))
			io.WriteString(theirs, http2.ClientPreface)
			theirs.Write(b)
			theirs.Close()
		}()
		h := newH2Conn(&c.endpoint)
		h.serve()
		ours.Close()
		if h.atWork != 0 || len(h.streams) != 0 || h.waiting != 0 || h.stint.lane != nil {
			t.Fatalf("%d requests at work, %d streams, %d octets are left", h.atWork, len(h.streams), h.waiting)
		}
	})
}
