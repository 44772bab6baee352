package coretest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coredns/coredns/test/clients"
)

// H2 is a client that speaks HTTP/2 frame by frame.
type H2 struct {
	testing.TB
	Conn   net.Conn
	Framer *http2.Framer
	enc    *hpack.Encoder
	block  bytes.Buffer
}

// NewH2 speaks on c; nothing has been said yet.
func NewH2(t testing.TB, c net.Conn) *H2 {
	p := &H2{TB: t, Conn: c, Framer: http2.NewFramer(c, c)}
	p.Framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.enc = hpack.NewEncoder(&p.block)
	return p
}

// DialH2 connects to a server with TLS; nothing has been said yet.
func DialH2(t testing.TB, addr string) *H2 {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(clients.AskTime))
	t.Cleanup(func() { c.Close() })
	return NewH2(t, c)
}

// ConnectH2 connects to a server with TLS, and exchanges the prefaces.
func ConnectH2(t testing.TB, addr string, settings ...http2.Setting) *H2 {
	t.Helper()
	p := DialH2(t, addr)
	io.WriteString(p.Conn, http2.ClientPreface)
	p.Framer.WriteSettings(settings...)
	p.Framer.WriteSettingsAck()
	for range 3 { // SETTINGS, WINDOW_UPDATE, and the acknowledgement
		p.Read()
	}
	return p
}

// Read is the next frame.
func (p *H2) Read() http2.Frame {
	p.Helper()
	f, err := p.Framer.ReadFrame()
	if err != nil {
		p.Fatalf("reading a frame: %v", err)
	}
	return f
}

// Until reads frames until one of another kind than those which carry nothing.
func (p *H2) Until() http2.Frame {
	p.Helper()
	for {
		switch f := p.Read().(type) {
		case *http2.WindowUpdateFrame:
		case *http2.SettingsFrame:
		default:
			return f
		}
	}
}

// Header is a header block of the fields given, name and value in turn.
func (p *H2) Header(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// Open sends a header with these fields.
func (p *H2) Open(id uint32, ended bool, fields ...string) {
	p.Framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.Header(fields...), EndHeaders: true, EndStream: ended})
}

// PostFields are the fields of a request with a body, and more.
func PostFields(more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "https", ":authority", "localhost", ":path", "/dns-query"}, more...)
}

// Post sends a request with that body.
func (p *H2) Post(id uint32, body []byte) {
	p.Open(id, false, PostFields()...)
	p.Framer.WriteData(id, true, body)
}

// Reply reads a whole response.
func (p *H2) Reply() (id uint32, status string, body []byte) {
	p.Helper()
	h, ok := p.Until().(*http2.MetaHeadersFrame)
	if !ok {
		p.Fatal("no HEADERS frame")
	}
	for ended := h.StreamEnded(); !ended; {
		d, ok := p.Until().(*http2.DataFrame)
		if !ok || d.StreamID != h.StreamID {
			p.Fatal("no DATA frame of the stream")
		}
		body = append(body, d.Data()...)
		ended = d.StreamEnded()
	}
	return h.StreamID, h.PseudoValue("status"), body
}

// Ended reads until the connection ends, and returns the code of the last GOAWAY frame.
func (p *H2) Ended() string {
	code := "no GOAWAY"
	for {
		f, err := p.Framer.ReadFrame()
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
