package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// http3By is a Proxy for an upstream that speaks HTTP/3 by hand: serve is told each connection, and its number.
func http3By(t *testing.T, serve func(n int64, c *quic.Conn)) *Proxy {
	t.Helper()
	return http3ByFew(t, 100, serve)
}

// http3ByFew is http3By for one that takes few streams on each connection.
func http3ByFew(t *testing.T, few int64, serve func(n int64, c *quic.Conn)) *Proxy {
	t.Helper()
	server, roots := authority(t)
	server = server.Clone()
	server.NextProtos = []string{"h3"}
	var opened atomic.Int64
	p := proxyTo(t, quicUpstream(t, server, &quic.Config{MaxIncomingStreams: few}, func(c *quic.Conn) { serve(opened.Add(1), c) }), transport.HTTPS3)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	return p
}

// opens is a stream of one direction that begins with s.
func opens(t *testing.T, c *quic.Conn, s string) *quic.SendStream {
	stream, err := c.OpenUniStream()
	if err == nil {
		_, err = stream.Write([]byte(s))
	}
	if err != nil {
		t.Error(err)
	}
	return stream
}

const http3Settings = "\x00\x04\x00" // a control stream that begins with a frame of no settings

// answerHTTP3 answers the request on s, and reports whether there was one.
func answerHTTP3(s *quic.Stream) bool {
	in, err := io.ReadAll(s)
	if err != nil {
		return false
	}
	_, _, rest, _ := nextFrame(in)
	_, query, _, _ := nextFrame(rest)
	s.Write([]byte(http3Header(":status", "200", "content-type", doh.MimeType) + http3Frame(frameData, string(replyTo(query)))))
	s.Close()
	return true
}

func answersHTTP3(s *quic.Stream) { answerHTTP3(s) }

// Each thing that HTTP/3 does not allow on streams beside requests ends the connection with its code, and nothing else
// does. The next query is answered on another one.
func TestHTTP3Control(t *testing.T) {
	for _, tc := range []struct {
		name    string
		streams []string
		ends    bool // the last one
		code    quic.ApplicationErrorCode
	}{
		{name: "nothing is wrong", streams: []string{http3Settings + http3Frame(0x21, "grease") + http3Frame(frameSettings+0x1d, ""), "\x02", "\x03", "\x40\x21grease"}},
		{name: "settings", streams: []string{"\x00" + http3Frame(frameSettings, "\x06\x40\x64")}},
		{name: "no settings", streams: []string{"\x00" + http3Frame(0x21, "")}, code: codeMissingSettings},
		{name: "settings twice", streams: []string{http3Settings + http3Frame(frameSettings, "")}, code: codeFrameUnexpected},
		{name: "two control streams", streams: []string{http3Settings, http3Settings}, code: codeStreamCreation},
		{name: "a push", streams: []string{"\x01\x00"}, code: codeID},
		{name: "a push is cancelled", streams: []string{http3Settings + http3Frame(frameCancelPush, "\x00")}, code: codeID},
		{name: "data", streams: []string{http3Settings + http3Frame(frameData, "x")}, code: codeFrameUnexpected},
		{name: "a ping of HTTP/2", streams: []string{http3Settings + http3Frame(6, "x")}, code: codeFrameUnexpected},
		{name: "away at what no client opens", streams: []string{http3Settings + http3Frame(frameGoAway, "\x01")}, code: codeID},
		{name: "away later than before", streams: []string{http3Settings + http3Frame(frameGoAway, "\x04") + http3Frame(frameGoAway, "\x08")}, code: codeID},
		{name: "away without a stream", streams: []string{http3Settings + http3Frame(frameGoAway, "")}, code: codeFrame},
		{name: "a frame too long", streams: []string{http3Settings + "\x21" + string(quicvarint.Append(nil, maxControl+1))}, code: codeExcessiveLoad},
		{name: "the control stream ends", streams: []string{http3Settings}, ends: true, code: codeClosedCriticalStream},
	} {
		ended := make(chan quic.ApplicationErrorCode, 1)
		p := http3By(t, func(n int64, c *quic.Conn) {
			if n > 1 {
				opens(t, c, http3Settings)
				streams(c, answersHTTP3)
				return
			}
			if tc.code == 0 { // else the query waits meanwhile
				go streams(c, answersHTTP3)
			}
			for i, s := range tc.streams {
				if stream := opens(t, c, s); tc.ends && i == len(tc.streams)-1 {
					stream.Close()
				}
			}
			select {
			case <-c.Context().Done():
			case <-time.After(300 * time.Millisecond):
				if tc.code != 0 {
					<-c.Context().Done()
				}
			}
			var app *quic.ApplicationError
			_, err := c.AcceptStream(c.Context())
			if errors.As(err, &app) && app.Remote {
				ended <- app.ErrorCode
			}
			close(ended)
		})
		p.SetReadTimeout(20 * time.Second)
		if _, err := ask(p, "a.example.org.", Options{}); err != nil && tc.code == 0 {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.code == 0 {
			if _, err := ask(p, "b.example.org.", Options{}); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			p.Stop()
			tc.code = codeNoError
		} else if code := <-ended; code != tc.code {
			t.Errorf("%s: ended with 0x%x", tc.name, uint64(code))
		} else if _, err := ask(p, "b.example.org.", Options{}); err != nil {
			t.Errorf("%s: the next query: %v", tc.name, err)
		}
	}
}

// A stream of a kind that nobody knows is not read, of which the upstream is told.
func TestHTTP3UnknownStreams(t *testing.T) {
	refused := make(chan error, 1)
	p := http3By(t, func(_ int64, c *quic.Conn) {
		opens(t, c, http3Settings)
		s := opens(t, c, "\x40\x21grease")
		go streams(c, answersHTTP3)
		<-s.Context().Done()
		refused <- context.Cause(s.Context())
	})
	if _, err := ask(p, "a.example.org.", Options{}); err != nil {
		t.Error(err)
	}
	var cut *quic.StreamError
	if err := <-refused; !errors.As(err, &cut) || !cut.Remote || cut.ErrorCode != quic.StreamErrorCode(codeStreamCreation) {
		t.Error(err)
	}
}

// An upstream that goes away, and does not say what becomes of requests which came too late, has not taken them: they
// are made again elsewhere. Those that it has taken it answers.
func TestHTTP3GoesAwayUnderRequests(t *testing.T) {
	const before, late = 2, 3
	var second atomic.Int64
	p := http3By(t, func(n int64, c *quic.Conn) {
		control := opens(t, c, http3Settings)
		if n > 1 {
			streams(c, func(s *quic.Stream) { second.Add(1); answersHTTP3(s) })
			return
		}
		var all []*quic.Stream
		for range before + late {
			s, err := c.AcceptStream(c.Context())
			if err != nil {
				t.Error(err)
				return
			}
			all = append(all, s)
		}
		control.Write([]byte(http3Frame(frameGoAway, string(quicvarint.Append(nil, 4*before)))))
		for _, s := range all {
			if s.StreamID() < 4*before {
				time.AfterFunc(200*time.Millisecond, func() { answersHTTP3(s) })
				continue
			}
			<-s.Context().Done() // no client may say that it rejects (RFC 9114 §4.1.1)
			var cut *quic.StreamError
			if err := context.Cause(s.Context()); !errors.As(err, &cut) || cut.ErrorCode != codeRequestCancelled {
				t.Errorf("the client cancels with %v", err)
			}
		}
		<-c.Context().Done()
	})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	began := time.Now()
	askMany(t, p, before+late)
	if n := second.Load(); n != late || time.Since(began) > 10*time.Second {
		t.Errorf("%d requests on the second connection, after %v", n, time.Since(began))
	}
}

// Queries that wait for a stream of an upstream that goes away are asked elsewhere, before it has answered the others.
func TestHTTP3GoesAwayWhileQueriesWait(t *testing.T) {
	waiting := make(chan struct{})
	p := http3ByFew(t, 1, func(n int64, c *quic.Conn) {
		control := opens(t, c, http3Settings)
		if n > 1 {
			streams(c, answersHTTP3)
			return
		}
		<-waiting
		control.Write([]byte(http3Frame(frameGoAway, "\x04")))
		<-c.Context().Done()
	})
	p.SetReadTimeout(20 * time.Second)
	p.SetExpire(time.Minute) // else the connection ends, which helps them, too
	patient(p)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := askCtx(ctx, p, "first.example.org.", Options{})
		first <- err
	}()
	q := &p.engine.quic
	has := func(users int) func() bool {
		return func() bool {
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.links) == 1 && q.links[0].users == users
		}
	}
	eventually.Holds(t, "the first one has the stream", has(1))
	go func() {
		eventually.Holds(t, "others wait", has(4))
		close(waiting)
	}()
	askMany(t, p, 3)
	cancel()
	if err := <-first; err == nil {
		t.Error("the first one was answered")
	}
}

// One that goes away later than all that was asked has the next queries elsewhere.
func TestHTTP3GoesAwayLater(t *testing.T) {
	var opened atomic.Int64
	p := http3By(t, func(n int64, c *quic.Conn) {
		opened.Store(n)
		control := opens(t, c, http3Settings)
		streams(c, func(s *quic.Stream) {
			answersHTTP3(s)
			if n == 1 && s.StreamID() == 0 {
				control.Write([]byte(http3Frame(frameGoAway, "\x7f\xfc")))
			}
		})
	})
	eventually.Holds(t, "there is another connection", func() bool {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		return opened.Load() == 2
	})
}

// A query that got its stream while the upstream went away is asked elsewhere, and not there.
func TestHTTP3GoesAwayBeforeTheRequest(t *testing.T) {
	var asked [3]atomic.Int64
	p := http3By(t, func(n int64, c *quic.Conn) {
		opens(t, c, http3Settings)
		streams(c, func(s *quic.Stream) {
			if answerHTTP3(s) {
				asked[n].Add(1)
			}
		})
	})
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	query, err := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	query[0], query[1] = 0, 0
	r := httpRequest{http.MethodPost, p.hostPort, p.path, query}
	tried := 0
	err = p.engine.quic.ask(t.Context(), false, func(net.Addr) {}, func(l *quicLink, s *quic.Stream) error {
		if tried++; tried == 1 {
			if err := l.goesAway(s.StreamID()); err != nil {
				t.Error(err)
			}
		}
		_, err := l.askHTTP3(t.Context(), s, &r, new(bytes.Buffer))
		return err
	})
	eventually.Holds(t, "the second connection is asked", func() bool { return asked[2].Load() == 1 })
	if err != nil || tried != 2 || asked[1].Load() != 1 {
		t.Errorf("%d tries, %d on the first connection, %v", tried, asked[1].Load(), err)
	}
}

// What answers a request, and is none that HTTP/3 allows, ends the connection with its code.
func TestHTTP3OddResponses(t *testing.T) {
	ended := make(chan error, 1)
	p := http3By(t, func(_ int64, c *quic.Conn) {
		go streams(c, func(s *quic.Stream) {
			io.ReadAll(s)
			s.Write([]byte(http3Frame(frameData, "x")))
			s.Close()
		})
		<-c.Context().Done()
		ended <- context.Cause(c.Context())
	})
	var fault http3Fault
	if _, err := ask(p, "a.example.org.", Options{}); !errors.As(err, &fault) || fault.code != codeFrameUnexpected {
		t.Error(err)
	}
	var app *quic.ApplicationError
	if err := <-ended; !errors.As(err, &app) || !app.Remote || app.ErrorCode != codeFrameUnexpected {
		t.Error(err)
	}
}

// A response that is longer than any reply is not read, and costs nothing but its stream.
func TestDoH3TooLong(t *testing.T) {
	var conns, asked atomic.Int64
	p := http3Upstream(t, nil, func(*quic.Conn) { conns.Add(1) }, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Write(make([]byte, 2*maxHTTP3Stream))
			return
		}
		answerHTTP(w, r)
	})
	if _, err := ask(p, "long.example.org.", Options{}); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || conns.Load() != 1 {
		t.Errorf("%d connections, %v", conns.Load(), err)
	}
}

// An upstream that closes each connection when it is asked, without a complaint, is asked once more, and then no more.
func TestDoH3ClosesUnderEachQuery(t *testing.T) {
	var conns atomic.Int64
	p := http3By(t, func(n int64, c *quic.Conn) {
		conns.Store(n)
		c.AcceptStream(c.Context())
		c.CloseWithError(codeNoError, "")
	})
	p.SetReadTimeout(20 * time.Second)
	if _, err := ask(p, "www.example.org.", Options{}); err == nil || conns.Load() != 2 {
		t.Errorf("%d connections, %v", conns.Load(), err)
	}
}

// One that resets a stream without a complaint before it has answered is asked once more, and then no more.
func TestDoH3ResetsWithoutComplaint(t *testing.T) {
	for _, resets := range []int64{1, 9} {
		var asked atomic.Int64
		p := http3By(t, func(_ int64, c *quic.Conn) {
			opens(t, c, http3Settings)
			streams(c, func(s *quic.Stream) {
				if asked.Add(1) > resets {
					answersHTTP3(s)
					return
				}
				io.ReadAll(s)
				s.CancelWrite(quic.StreamErrorCode(codeNoError))
			})
		})
		p.SetReadTimeout(20 * time.Second)
		if _, err := ask(p, "www.example.org.", Options{}); (err == nil) != (resets == 1) || asked.Load() != 2 {
			t.Errorf("%d resets: asked %d times, %v", resets, asked.Load(), err)
		}
	}
}

func TestEnough(t *testing.T) {
	for code, want := range map[quic.StreamErrorCode]bool{quic.StreamErrorCode(codeNoError): true, codeRequestRejected: false} {
		for _, remote := range []bool{true, false} {
			if got := enough(&quic.StreamError{ErrorCode: code, Remote: remote}); got != (want && remote) {
				t.Errorf("0x%x, remote %v: %v", uint64(code), remote, got)
			}
		}
	}
}

// An upstream that leads queries round in circles is followed so many times only.
func TestDoH3RedirectsEnd(t *testing.T) {
	var arrived atomic.Int64
	p := http3Upstream(t, nil, func(*quic.Conn) {}, func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
	})
	if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, errRedirect) || arrived.Load() != 1+maxRedirects {
		t.Errorf("%d requests, %v", arrived.Load(), err)
	}
}
