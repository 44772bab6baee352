package http2

import (
	"bytes"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// Clients that do what they must not: the connection ends with the right code.
func TestConnectionErrors(t *testing.T) {
	s := serve(t, newSite(), nil)
	for name, tc := range map[string]struct {
		do   func(p *coretest.H2)
		want string
	}{
		"even stream":          {func(p *coretest.H2) { p.Open(2, true, getting("/")...) }, "PROTOCOL_ERROR"},
		"stream 0":             {func(p *coretest.H2) { p.Conn.Write([]byte("\x00\x00\x00\x01\x05\x00\x00\x00\x00")) }, "PROTOCOL_ERROR"},
		"DATA of no stream":    {func(p *coretest.H2) { p.Framer.WriteData(1, true, nil) }, "PROTOCOL_ERROR"},
		"WINDOW_UPDATE of 0":   {func(p *coretest.H2) { p.Framer.AllowIllegalWrites = true; p.Framer.WriteWindowUpdate(0, 0) }, "PROTOCOL_ERROR"},
		"WINDOW_UPDATE early":  {func(p *coretest.H2) { p.Framer.WriteWindowUpdate(7, 1) }, "PROTOCOL_ERROR"},
		"window too wide":      {func(p *coretest.H2) { p.Framer.WriteWindowUpdate(0, 1<<31-1) }, "FLOW_CONTROL_ERROR"},
		"bad SETTINGS":         {setting(http2.Setting{ID: http2.SettingEnablePush, Val: 2}), "PROTOCOL_ERROR"},
		"many SETTINGS":        {setting(manySettings(101)...), "PROTOCOL_ERROR"},
		"initial window":       {setting(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}), "FLOW_CONTROL_ERROR"},
		"PUSH_PROMISE":         {pushPromise, "PROTOCOL_ERROR"},
		"stray CONTINUATION":   {func(p *coretest.H2) { p.Framer.WriteContinuation(1, true, nil) }, "PROTOCOL_ERROR"},
		"frame too long":       {func(p *coretest.H2) { p.Framer.WriteData(1, true, make([]byte, 40000)) }, "FRAME_SIZE_ERROR"},
		"PING of 7 octets":     {rawFrame(http2.FramePing, 0, 0, "1234567"), "FRAME_SIZE_ERROR"},
		"bad header block":     {rawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, "\xFF"), "COMPRESSION_ERROR"},
		"cut header block":     {rawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, "\x40\x05a"), "COMPRESSION_ERROR"},
		"HEADERS, all padding": {rawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, "\xC8ab"), "PROTOCOL_ERROR"},
		"HEADERS too short":    {rawFrame(http2.FrameHeaders, http2.FlagHeadersPriority|http2.FlagHeadersEndHeaders, 1, "abcd"), "FRAME_SIZE_ERROR"},
		"DATA too short":       {rawFrame(http2.FrameData, http2.FlagDataPadded, 1, ""), "FRAME_SIZE_ERROR"},
		"HEADERS broken off":   {brokenOff, "PROTOCOL_ERROR"},
		"depends on itself":    {dependsOnItself, "PROTOCOL_ERROR"},
		"RST_STREAM early":     {func(p *coretest.H2) { p.Framer.WriteRSTStream(1, http2.ErrCodeCancel) }, "PROTOCOL_ERROR"},
		"RST_STREAM of ours":   {func(p *coretest.H2) { post(p, 3, "/", ""); p.Framer.WriteRSTStream(2, http2.ErrCodeCancel) }, "PROTOCOL_ERROR"},
		"stream number back":   {headersAfter(5, 3), "PROTOCOL_ERROR"},
		"stream opened twice":  {headersAfter(1, 1), "STREAM_CLOSED"},
		"too much DATA":        {floodData, "FLOW_CONTROL_ERROR"},
		"CONTINUATION flood":   {floodContinuation, "ENHANCE_YOUR_CALM"},
		"PING flood":           {func(p *coretest.H2) { go floodPings(p) }, "ENHANCE_YOUR_CALM"},
		"header of one string": {longString, "ENHANCE_YOUR_CALM"},
	} {
		p := coretest.ConnectH2(t, s.addr)
		tc.do(p)
		if got := p.Ended(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		p.Conn.Close()
	}
	if n := coretest.Limited(s.Service, "control_frames"); n != 2 { // the header of one string is none
		t.Errorf("counted %d floods", n)
	}
	if n := coretest.Limited(s.Service, "header_bytes"); n != 1 {
		t.Errorf("counted %d long headers", n)
	}
}

// A connection that ended with an error is closed at once (RFC 9113 §5.4.1), whoever still works on its requests; these
// are told that nobody wants an answer.
func TestConnectionErrorClosesAtOnce(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "/stubborn", "one")
	post(p, 3, "/later", "two")
	s.waits(2)
	p.Framer.WriteData(5, true, make([]byte, 40000))
	defer close(s.later)
	p.Conn.SetDeadline(time.Now().Add(5 * time.Second))
	if got := p.Ended(); got != "FRAME_SIZE_ERROR" {
		t.Errorf("got %s", got)
		return
	}
	<-s.ended
}

// headersAfter has a stream answered, and opens another one.
func headersAfter(first, second uint32) func(*coretest.H2) {
	return func(p *coretest.H2) {
		p.Open(first, true, getting("/1")...)
		answered(p)
		p.Open(second, true, getting("/1")...)
	}
}

func setting(all ...http2.Setting) func(*coretest.H2) {
	return func(p *coretest.H2) { p.Framer.WriteSettings(all...) }
}

// manySettings are n of kinds that nobody knows.
func manySettings(n int) (all []http2.Setting) {
	for i := range n {
		all = append(all, http2.Setting{ID: http2.SettingID(1000 + i)})
	}
	return all
}

func rawFrame(kind http2.FrameType, flags http2.Flags, id uint32, payload string) func(*coretest.H2) {
	return func(p *coretest.H2) { p.Framer.WriteRawFrame(kind, flags, id, []byte(payload)) }
}

func pushPromise(p *coretest.H2) {
	p.Framer.AllowIllegalWrites = true
	p.Framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
}

func brokenOff(p *coretest.H2) {
	p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.Header(getting("/")...)})
	p.Framer.WritePing(false, [8]byte{})
}

func dependsOnItself(p *coretest.H2) {
	p.Framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: p.Header(), EndHeaders: true, Priority: http2.PriorityParam{StreamDep: 1, Weight: 1},
	})
}

// floodData sends more than the connection's window in bodies that do not end.
func floodData(p *coretest.H2) {
	chunk := make([]byte, frameSize)
	for id := uint32(1); id < 40; id += 2 {
		p.Open(id, false, posting("/")...)
		for range 3 {
			p.Framer.WriteData(id, false, chunk)
		}
	}
}

func floodContinuation(p *coretest.H2) {
	p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.Header(posting("/")...)})
	for range 100 {
		p.Framer.WriteContinuation(1, false, nil)
	}
}

func floodPings(p *coretest.H2) {
	for range maxIdles + 3000 { // many stay unread
		if p.Framer.WritePing(false, [8]byte{}) != nil {
			return
		}
	}
}

func longString(p *coretest.H2) {
	block := append([]byte{0x40, 1, 'a', 0x7F}, 0x80, 0x80, 0x80, 0x01) // a value of 2 MiB
	p.Framer.WriteRawFrame(http2.FrameHeaders, 0, 1, block)
	for range 20 {
		p.Framer.WriteContinuation(1, false, bytes.Repeat([]byte("x"), frameSize))
	}
}

// What begins otherwise than HTTP/2 does, or does not go on, ends.
func TestPrefaces(t *testing.T) {
	s := serve(t, newSite(), nil)
	const ping = "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
	for name, preface := range map[string]string{
		"HTTP/1.1":     "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"no SETTINGS":  http2.ClientPreface + ping,
		"SETTINGS ACK": http2.ClientPreface + "\x00\x00\x00\x04\x01\x00\x00\x00\x00",
	} {
		p := coretest.DialH2(t, s.addr)
		io.WriteString(p.Conn, preface)
		if got := p.Ended(); got != "PROTOCOL_ERROR" {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Clients that say nothing more, or half of what they have begun, are sent away and counted.
func TestTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		octets   string // behind the prefaces; all of it where there is no preface
		preface  bool
		asks     bool // before
		want     string
		limit    string
		idleTime time.Duration
		least    time.Duration // until it ends
	}{
		"half a preface":   {http2.ClientPreface[:10], false, false, "no GOAWAY", "read_time", time.Minute, 150 * time.Millisecond},
		"preface only":     {http2.ClientPreface, false, false, "no GOAWAY", "read_time", time.Minute, 150 * time.Millisecond},
		"no request":       {"", true, false, "NO_ERROR", "idle_time", 400 * time.Millisecond, 350 * time.Millisecond},
		"a frame's begin":  {"\x00\x00\x08\x06", true, false, "NO_ERROR", "read_time", 200 * time.Millisecond, 150 * time.Millisecond},
		"no other request": {"", true, true, "NO_ERROR", "idle_time", 200 * time.Millisecond, 150 * time.Millisecond},
	} {
		s := serve(t, newSite(), func(s *service.Service) { s.Read, s.Idle = 200*time.Millisecond, tc.idleTime })
		connect := coretest.DialH2
		if tc.preface {
			connect = func(t testing.TB, addr string) *coretest.H2 { return coretest.ConnectH2(t, addr) }
		}
		began := time.Now()
		p := connect(t, s.addr)
		if tc.asks {
			post(p, 1, "/", "abc")
			began = time.Now()
			if got := answered(p); got != "1: abc" {
				t.Errorf("%s: got %s", name, got)
			}
		}
		io.WriteString(p.Conn, tc.octets)
		got := p.Ended()
		if tc.want == "no GOAWAY" && got == "NO_ERROR" {
			got = tc.want // it may be told, or not
		}
		if got != tc.want || !coretest.Since(began, tc.least) || coretest.Limited(s.Service, tc.limit) != 1 {
			t.Errorf("%s: got %s, counted %d", name, got, coretest.Limited(s.Service, tc.limit))
		}
	}
}

// Who had to wait for a place has as much time from then on as anybody.
func TestTimeBeginsWithThePlace(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Connections, s.Read, s.Idle = 1, time.Second, time.Second })
	first := coretest.ConnectH2(t, s.addr)
	post(first, 1, "/later", "abc")
	s.waits(1)
	raw := coretest.Dial(t, s.addr)
	eventually.Holds(t, "it waits for a place", func() bool { return coretest.Limited(s.Service, "connections") == 1 })
	time.Sleep(s.Read + 100*time.Millisecond)
	close(s.later)
	if got := answered(first); got != "1: abc" {
		t.Errorf("the one before got %s", got)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // so that the server waits for what follows
	second := coretest.NewH2(t, c)
	io.WriteString(c, http2.ClientPreface)
	second.Framer.WriteSettings()
	post(second, 1, "/", "def")
	if got := answered(second); got != "1: def" {
		t.Errorf("got %s", got)
	}
}

// A request that waits keeps its connection, however idle that is.
func TestIdleWhileWaiting(t *testing.T) {
	s := serve(t, newSite(), func(s *service.Service) { s.Read, s.Idle = 200*time.Millisecond, 200*time.Millisecond })
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "/later", "abc")
	s.waits(1)
	time.AfterFunc(500*time.Millisecond, func() { close(s.later) })
	if got := answered(p); got != "1: abc" {
		t.Errorf("got %s", got)
	}
}

// PING is answered with its octets; what is not known, or says nothing to a server, is passed over.
func TestFramesThatAskForNothing(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	p.Framer.WriteRawFrame(0xEE, 0, 0, []byte("an extension"))
	p.Framer.WritePriority(5, http2.PriorityParam{Weight: 3})
	p.Framer.WriteGoAway(0, http2.ErrCodeNo, nil)
	p.Framer.WritePing(true, [8]byte{9})
	p.Framer.WriteWindowUpdate(0, 1)
	p.Framer.WritePing(false, [8]byte{1, 2, 3})
	if f, ok := p.Until().(*http2.PingFrame); !ok || !f.IsAck() || f.Data != [8]byte{1, 2, 3} {
		t.Errorf("got %v", f)
	}
	post(p, 1, "/", "abc")
	if got := answered(p); got != "1: abc" {
		t.Errorf("got %s", got)
	}
}

// What a connection begins with says the server's limits.
func TestSettings(t *testing.T) {
	for streams, want := range map[int]uint32{100: 100, 0: maxWindow} {
		s := serve(t, newSite(), func(s *service.Service) { s.Streams = streams })
		p := coretest.DialH2(t, s.addr)
		io.WriteString(p.Conn, http2.ClientPreface)
		p.Framer.WriteSettings()
		f, ok := p.Read().(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("got %v", f)
		}
		most, _ := f.Value(http2.SettingMaxConcurrentStreams)
		window, _ := f.Value(http2.SettingInitialWindowSize)
		if most != want || window != streamWindow {
			t.Errorf("%d streams, windows of %d octets", most, window)
		}
		if f, ok := p.Read().(*http2.WindowUpdateFrame); !ok || f.StreamID != 0 || f.Increment != connWindow-defaultWindow {
			t.Errorf("got %v", f)
		}
		if f, ok := p.Read().(*http2.SettingsFrame); !ok || !f.IsAck() {
			t.Errorf("got %v", f)
		}
	}
}

// The first header behind settings that make the client's dynamic table smaller says that ours is empty (RFC 7541 §4.2),
// and no other one. Clients such as those of nghttp2 end the connection otherwise.
func TestSmallerHeaderTable(t *testing.T) {
	id := http2.SettingHeaderTableSize
	p := coretest.ConnectH2(t, serve(t, newSite(), nil).addr, http2.Setting{ID: id, Val: 0})
	p.Framer.ReadMetaHeaders = nil
	says := func(what string, want bool) {
		t.Helper()
		f, ok := p.Until().(*http2.HeadersFrame)
		if !ok || f.HeaderBlockFragment()[0] == 0x20 != want {
			t.Errorf("%s: got %v", what, f)
		}
		if _, err := hpack.NewDecoder(4096, nil).DecodeFull(f.HeaderBlockFragment()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ask := func(stream uint32, what string, want bool) {
		t.Helper()
		p.Open(stream, true, getting("/0")...)
		says(what, want)
	}
	ask(1, "a table of 0 octets", true)
	ask(3, "said before", false)
	p.Framer.WriteSettings(http2.Setting{ID: id, Val: 4096})
	ask(5, "the default", false)
	p.Framer.WriteSettings(http2.Setting{ID: id, Val: 4095}, http2.Setting{ID: id, Val: 8192})
	p.Open(7, false, append(posting("/"), "expect", "100-continue")...)
	says("smaller, then greater", true)
	p.Framer.WriteData(7, true, nil)
	says("behind status 100", false)
}

// A server that stops before the client has said a word begins as every server does (RFC 9113 §3.4), and answers what
// is on its way.
func TestDrainBeforePrefaces(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.DialH2(t, s.addr)
	io.WriteString(p.Conn, http2.ClientPreface[:5])
	ended := make(chan error)
	go func() { ended <- s.end() }()
	if f, ok := p.Read().(*http2.SettingsFrame); !ok || f.IsAck() {
		t.Fatalf("the server begins with %v", f)
	}
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != maxWindow || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	io.WriteString(p.Conn, http2.ClientPreface[5:])
	p.Framer.WriteSettings()
	post(p, 1, "/", "one")
	if got := answered(p); got != "1: one" {
		t.Errorf("got %s", got)
	}
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 1 {
		t.Errorf("got %v", g)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A server that stops lets in what is on its way, and ends with the last answer.
func TestDrain(t *testing.T) {
	s := serve(t, newSite(), nil)
	p := coretest.ConnectH2(t, s.addr)
	post(p, 1, "/later", "one")
	s.waits(1)
	ended := make(chan error)
	go func() { ended <- s.end() }()
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != maxWindow || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	post(p, 3, "/", "two") // was on its way
	if got := answered(p); got != "3: two" {
		t.Errorf("got %s", got)
	}
	if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 3 || g.ErrCode != http2.ErrCodeNo {
		t.Errorf("got %v", g)
	}
	select {
	case err := <-s.ended:
		t.Fatalf("what is at work is not waited for: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(s.later)
	if got := answered(p); got != "1: one" {
		t.Errorf("got %s", got)
	}
	if got := p.Ended(); got != "no GOAWAY" {
		t.Errorf("got %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
