package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// fewEach is an upstream of HTTP/2 that takes so many requests on each connection, tells that, and closes it when they
// are answered.
type fewEach struct {
	few   int
	conns atomic.Int64
}

// proxy is a Proxy for u.
func (u *fewEach) proxy(t *testing.T) *Proxy {
	t.Helper()
	return overTLS(t, http2.NextProtoTLS, func(_ int, c net.Conn) { u.serve(c) })
}

func (u *fewEach) serve(c net.Conn) {
	u.conns.Add(1)
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	paths, queries := hpack.NewDecoder(4096, nil), map[uint32][]byte{}
	for taken, answered := 0, 0; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			fields, _ := paths.DecodeFull(frame.HeaderBlockFragment())
			if taken++; taken <= u.few {
				queries[frame.StreamID] = []byte{}
			}
			if taken == max(u.few, 1) {
				f.WriteGoAway(frame.StreamID*uint32(min(u.few, 1)), http2.ErrCodeNo, nil)
			}
			if frame.StreamEnded() && taken <= u.few { // GET
				i := slices.IndexFunc(fields, func(h hpack.HeaderField) bool { return h.Name == ":path" })
				_, q, _ := strings.Cut(fields[i].Value, "dns=")
				b, _ := base64.RawURLEncoding.DecodeString(q)
				answerFrames(f, frame.StreamID, replyTo(b))
				answered++
			}
		case *http2.DataFrame:
			q, ok := queries[frame.StreamID]
			if !ok {
				break
			}
			q = append(q, frame.Data()...)
			if queries[frame.StreamID] = q; frame.StreamEnded() {
				answerFrames(f, frame.StreamID, replyTo(q))
				answered++
			}
		}
		if answered == u.few && taken > u.few {
			c.(*tls.Conn).CloseWrite()
		}
	}
}

func answerFrames(f *http2.Framer, stream uint32, reply []byte) {
	var b bytes.Buffer
	h := hpack.NewEncoder(&b)
	h.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	h.WriteField(hpack.HeaderField{Name: "content-type", Value: doh.MimeType})
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: b.Bytes(), EndHeaders: true})
	f.WriteData(stream, true, reply)
}

// Queries that come together have as many connections, one after the other, as they need, and no query fails.
func TestFewRequestsOnEachConnection(t *testing.T) {
	for method, few := range map[string]int{http.MethodPost: 3, http.MethodGet: 10} {
		const all = 30
		u := &fewEach{few: few}
		p := u.proxy(t)
		p.SetDOHRequestOptions(method)
		askMany(t, p, all)
		if n := u.conns.Load(); int(n) < all/few {
			t.Errorf("%s: %d connections", method, n)
		}
	}
}

// An upstream that takes no request at all has no more than so many tries for each.
func TestNoRequestsOnAnyConnection(t *testing.T) {
	u := &fewEach{}
	p := u.proxy(t)
	if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, errNotTaken) {
		t.Error(err)
	}
	if n := u.conns.Load(); n != maxReturns+1 {
		t.Errorf("%d connections", n)
	}
}

// Where an upstream of HTTP/1.1 closes all connections that are idle, a query finds the end of each and is answered.
func TestManyConnectionsClosedWhileIdle(t *testing.T) {
	const all = 5
	var arrived atomic.Int64
	together := make(chan struct{})
	type once struct{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(once{}).(*atomic.Int64).Add(1) > 1 {
			panic(http.ErrAbortHandler) // the connection ends
		}
		if arrived.Add(1) == all {
			close(together)
		}
		<-together
		w.Write(replyTo(queryOf(r)))
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, once{}, new(atomic.Int64))
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	askMany(t, p, all)
	if _, err := ask(p, "www.example.org.", Options{}); err != nil || arrived.Load() != all+1 {
		t.Errorf("%d are answered, %v", arrived.Load(), err)
	}
}

// Which connection gets the next query, and whether another one is opened for those that wait.
func TestHTTPPoolChooses(t *testing.T) {
	const now = int64(time.Hour)
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	e := &p.engine
	open := func(c *httpConn) { c.open, c.settled, c.speaks = true, true, newHTTP2(c) }
	kinds := map[byte]func(*httpConn){
		'o': open,
		'b': func(c *httpConn) { open(c); c.pending.n = 1 }, // busy
		'f': func(c *httpConn) { open(c); c.speaks.(*httpVersion2).most = 0 },
		's': func(c *httpConn) { open(c); c.silence.Ask(now - int64(time.Minute)) },
		'r': func(c *httpConn) { open(c); c.retired, c.pending.n = true, 1 },
		'd': func(c *httpConn) { c.began = now - slowDial/2 }, // is opened
		'l': func(*httpConn) {},                               // and late
	}
	for _, tc := range []struct {
		pool    string
		change  func(p *httpPool, x *Exchange)
		want    int // -1: none
		waiting int
		more    bool // another one is opened, if so many wait
	}{
		{"", nil, -1, 1, true},
		{"o", nil, 0, 0, false},
		{"bo", nil, 1, 0, false},
		{"rb", nil, 1, 0, false},
		{"r", nil, -1, 1, true},
		{"f", nil, -1, 1, true},
		{"b", func(p *httpPool, _ *Exchange) {
			p.conns[0].pending.n, p.conns[0].speaks.(*httpVersion2).most = crowded, math.MaxInt32
		}, -1, 1, true},
		{"s", nil, -1, 1, true},
		{"sd", nil, -1, 1, false},
		{"sl", nil, 0, 0, false},
		{"ss", nil, 0, 0, false},
		{"sb", nil, 1, 0, false},
		{"d", nil, -1, 1000, false},
		{"l", nil, -1, 1, true},
		{"llllllll", nil, -1, 1, false},
		{"fdddddddd", func(p *httpPool, _ *Exchange) { p.plain = true }, -1, 100, false},
		{"fddddddd", func(p *httpPool, _ *Exchange) { p.plain = true }, -1, 100, true},
		{"fd", func(p *httpPool, _ *Exchange) { p.plain = true }, -1, 1, false},
		{"fd", func(p *httpPool, _ *Exchange) { p.streams = 10 }, -1, 10, false},
		{"fd", func(p *httpPool, _ *Exchange) { p.streams = 10 }, -1, 11, true},
		{"fd", func(p *httpPool, _ *Exchange) { p.limit.n, p.dialled = 10, now }, -1, 11, true},
		{"fd", func(p *httpPool, _ *Exchange) { p.limit.n, p.dialled = 10, now }, -1, 10, false},
		{"fd", func(p *httpPool, _ *Exchange) { p.limit.n, p.dialled = 10, now-int64(dialPause) }, -1, 10, true},
		{"o", func(p *httpPool, _ *Exchange) { p.limit.n = 10; p.conns[0].asked = 10 }, -1, 1, true},
		{"f", func(p *httpPool, _ *Exchange) { p.shut = now + 1 }, -1, 1, false},
		{"l", func(p *httpPool, _ *Exchange) { p.shut = now + 1 }, -1, 1, true},
		{"f", func(p *httpPool, _ *Exchange) { p.failing, p.dialled = true, now }, -1, 1, false},
		{"f", func(p *httpPool, _ *Exchange) { p.failing, p.dialled = true, now-int64(dialPause) }, -1, 1, true},
		{"d", func(p *httpPool, _ *Exchange) { p.failing, p.plain = true, true }, -1, 100, false},
		{"l", func(p *httpPool, _ *Exchange) { p.failing, p.plain, p.dialled = true, true, now }, -1, 1, true},
		{"s", func(p *httpPool, _ *Exchange) { p.shut = now + 1 }, 0, 0, false},
		{"o", func(_ *httpPool, x *Exchange) { x.fresh = now }, -1, 1, true},
		{strings.Repeat("f", maxHTTPConns), nil, -1, 1, false},
	} {
		pool, x := &httpPool{engine: e}, new(Exchange)
		e.mu.Lock()
		for i := range tc.pool {
			c := newHTTPConn(pool, now-2*slowDial)
			kinds[tc.pool[i]](c)
			pool.conns = append(pool.conns, c)
		}
		if tc.change != nil {
			tc.change(pool, x)
		}
		got := slices.Index(pool.conns, pool.choose(x, now))
		pool.waiting = make([]*Exchange, tc.waiting)
		more := pool.wantsMore(now)
		e.mu.Unlock()
		if got != tc.want || tc.waiting > 0 && more != tc.more {
			t.Errorf("%.20s: the query goes to %d, and with %d that wait another one is opened: %t", tc.pool, got, tc.waiting, more)
		}
	}
}

// Whoever waits for an upstream that is not there fails at once, however many wait, and whether each has a connection.
func TestHTTPPoolFailsAtOnce(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(replyTo(queryOf(r))) }))
	s.StartTLS()
	p := proxyTo(t, strings.TrimPrefix(s.URL, "https://"), transport.HTTPS)
	p.SetTLSConfig(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone())
	p.SetReadTimeout(5 * time.Second)
	_, err := ask(p, "www.example.org.", Options{})
	s.Close()
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the connection's end", func() bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		return len(p.engine.https.conns) == 0
	})
	var asked sync.WaitGroup
	for range 5 * maxDials {
		asked.Go(func() {
			if _, err := ask(p, "www.example.org.", Options{}); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Error(err)
			}
		})
	}
	asked.Wait()
}

// Who waits when a connection could not be opened: for one that is open, or may be in a moment.
func TestHTTPPoolFailed(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	e := &p.engine
	now := e.now() + int64(time.Hour)
	for _, tc := range []struct {
		conn  httpConn
		err   error
		fails bool
	}{
		{httpConn{open: true}, syscall.ECONNREFUSED, false},
		{httpConn{open: true, retired: true}, syscall.ECONNREFUSED, true},
		{httpConn{began: now - slowDial/2}, syscall.ECONNREFUSED, false},
		{httpConn{began: now - 2*slowDial}, syscall.ECONNREFUSED, true},
		{httpConn{began: now - 2*slowDial}, os.ErrDeadlineExceeded, false},
	} {
		pool := &httpPool{engine: e, conns: []*httpConn{&tc.conn}}
		e.mu.Lock()
		x := &Exchange{on: pool}
		pool.waiting = []*Exchange{x}
		if failures := pool.failed(tc.err, now); (len(failures) == 1) != tc.fails || len(pool.waiting) == len(failures) {
			t.Errorf("%+v, %v: %d fail", tc.conn, tc.err, len(failures))
		}
		e.unlock()
	}
}

// A query for which no connection is opened for a while has one opened after that, whether others come or not.
func TestHTTPPoolOpensLater(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	e := &p.engine
	e.mu.Lock()
	defer e.unlock()
	now := e.now()
	pool := &httpPool{engine: e, shut: now + slowDial, waiting: []*Exchange{{fresh: now}}}
	c := newHTTPConn(pool, now-1) // is too old for it
	c.open, c.settled, c.speaks = true, true, newHTTP2(c)
	pool.conns = []*httpConn{c}
	if pool.dispatch(now); len(pool.waiting) != 1 || len(pool.conns) != 1 || pool.again != pool.shut {
		t.Errorf("%d wait, there are %d connections, the next look is %d ns later", len(pool.waiting), len(pool.conns), pool.again-now)
	}
}

// How many queries a connection takes is learned when the upstream ends some after so many, and forgotten when it does not.
func TestRequestLimit(t *testing.T) {
	var l requestLimit
	for i, step := range []struct {
		taken  int // 0: a connection had as many as were known, and was not ended
		others bool
		want   int
	}{
		{500, false, 0}, {600, false, 0}, {600, false, 600}, {3, true, 3}, {7, false, 3}, {0, false, 6}, {0, false, 12}, {1, true, 1},
	} {
		if step.taken > 0 {
			l.ended(step.taken, step.others)
		} else {
			l.exceeded()
		}
		if l.n != step.want {
			t.Errorf("%d: %+v", i, l)
		}
	}
	l.ended(0, true)
	if l.n != 1 || l.left(0) != 1 || l.left(1) != 0 || l.left(2) != 0 {
		t.Errorf("%+v", l)
	}
	l.n = crowded
	if l.exceeded(); l.n != 0 || l.left(1000) != crowded {
		t.Errorf("%+v", l)
	}
}

// Before a connection has had all the queries that it takes, the next one is opened, so that none has to wait for that.
func TestConnectionIsOpenedAhead(t *testing.T) {
	u := &fewEach{few: 40}
	p := u.proxy(t)
	p.engine.mu.Lock()
	p.engine.https.limit.n = u.few
	p.engine.mu.Unlock()
	for i := range u.few {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		if want := int64(1); i < u.few*3/4-1 && u.conns.Load() != want {
			t.Fatalf("%d connections after %d queries", u.conns.Load(), i+1)
		}
	}
	eventually.Holds(t, "another connection", func() bool { return u.conns.Load() == 2 })
}

// Connections that are idle for long are closed, and of those of HTTP/1.1 not many are kept.
func TestIdleHTTPConnections(t *testing.T) {
	p, _ := http1Upstream(t, func(_ int, _ *http.Request, q []byte) string {
		time.Sleep(20 * time.Millisecond)
		return ok(q)
	})
	p.SetExpire(time.Millisecond)
	askMany(t, p, 2*maxIdleHTTP)
	e := &p.engine
	eventually.Holds(t, "no connection is opened any more", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !slices.ContainsFunc(e.https.conns, func(c *httpConn) bool { return !c.open })
	})
	e.mu.Lock()
	defer e.unlock()
	if n := len(e.https.conns); n == 0 || n > maxIdleHTTP {
		t.Errorf("%d connections are kept", n)
	}
	e.https.reap(p.transport.conf.Load(), e.now()+int64(httpIdle)-int64(time.Minute))
	if len(e.https.conns) == 0 {
		t.Error("connections are closed early")
	}
	e.https.reap(p.transport.conf.Load(), e.now()+int64(httpIdle)+int64(time.Minute))
	if n := len(e.https.conns); n != 0 {
		t.Errorf("%d connections are idle for long", n)
	}
}

// A connection that is there when the queries that it was opened for have ended is one of those that are idle.
func TestHTTPConnThatComesLate(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	pool := &p.engine.https
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	for i := 1; i <= maxIdleHTTP+2; i++ {
		c := newHTTPConn(pool, 0)
		p.engine.mu.Lock()
		c.conn = near
		pool.conns = append(pool.conns, c)
		p.engine.mu.Unlock()
		c.opened(near)
		p.engine.mu.Lock()
		if n := len(pool.conns); n != min(i, maxIdleHTTP) {
			t.Errorf("of %d connections %d are kept", i, n)
		}
		p.engine.mu.Unlock()
	}
}

// Queries that lose their connection go out on another one when all of them have come back. After each of them those
// before it would be looked at, which takes a second with 20,000.
func TestHTTPConnLosesMany(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:1", transport.HTTPS)
	e := &p.engine
	pool := &e.https
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	conn := func() *httpConn {
		c := newHTTPConn(pool, e.now())
		c.conn, c.local, c.open, c.settled = near, near.LocalAddr(), true, true
		c.speaks = newHTTP2(c)
		pool.conns = append(pool.conns, c)
		return c
	}
	e.mu.Lock()
	pool.proven = true
	lost, now := conn(), e.now()
	for range 5 {
		x := &Exchange{Query: packedQuery("www.example.org."), Owner: enderFunc(func(*Exchange) {}), Timeout: time.Minute, proxy: p, engine: e, deadline: never}
		lost.ask(x, now)
	}
	first := lost.pending.all()[0]
	conn()
	e.mu.Unlock()
	lost.lost(io.EOF)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(pool.waiting) != 0 || first.stream == nil || first.stream.id != 9 { // who came back first is behind the others
		t.Errorf("%d wait, the first one has %+v", len(pool.waiting), first.stream)
	}
}
