package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
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

// proxy is a Proxy that trusts u.
func (u *fewEach) proxy(t *testing.T) *Proxy {
	t.Helper()
	server, roots := authority(t)
	server = server.Clone()
	server.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { l.Close() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { u.serve(c) })
			t.Cleanup(func() { c.Close() })
		}
	})
	p := proxyTo(t, l.Addr().String(), transport.HTTPS)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	p.SetReadTimeout(20 * time.Second)
	patient(p)
	return p
}

func (u *fewEach) serve(c net.Conn) {
	defer c.Close()
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
	if n := u.conns.Load(); n != maxTries+1 {
		t.Errorf("%d connections", n)
	}
}

// Any request may open a connection, unless one was not taken a moment ago: then one in a while.
func TestWhoOpensConnections(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:443", transport.HTTPS)
	c := &httpClient{}
	other := context.WithValue(t.Context(), turnKey{}, &takenTurn{c: c})
	opens := context.WithValue(t.Context(), turnKey{}, &takenTurn{c: c, opens: &opening{}})
	for _, step := range []struct {
		ctx     context.Context
		refused int64
		now     time.Duration
		want    bool
	}{
		{opens, 0, time.Hour, true}, {other, 0, time.Hour, true}, {other, 0, time.Hour, true},
		{other, int64(time.Hour), time.Hour, false}, {opens, int64(time.Hour), time.Hour, true},
		{other, int64(time.Hour), time.Hour + dialPause/2, false}, {other, int64(time.Hour), time.Hour + dialPause, true},
		{other, int64(time.Hour), time.Hour + dialPause, false}, {other, 1, time.Hour + dialPause, true},
	} {
		c.refused = step.refused
		if p.clients.mayDial(step.ctx, int64(step.now)) != step.want {
			t.Errorf("%+v", step)
		}
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

// A request that finds no connection says nothing of those that there are, and looks again for as long as it has time.
func TestNoConnectionIsFree(t *testing.T) {
	p := proxyTo(t, "127.0.0.1:443", transport.HTTPS)
	c := &httpClient{connected: true, shared: true}
	p.clients.made(t.Context(), c, nil, 1, errNoneFree)
	if !c.connected || c.refused != 0 {
		t.Error("no connection is relied on any more")
	}
	ctx, cancel := context.WithCancel(t.Context())
	of := tries{n: maxTries}
	if !of.again(ctx, p, c, new(sending), errNoneFree) || of.n != maxTries {
		t.Error("it is a try as any other")
	}
	if cancel(); of.again(ctx, p, c, new(sending), errNoneFree) {
		t.Error("its time is over, and it looks again")
	}
}

// An upstream that answers, while a connection is opened for so long that it may take no more, has nobody wait for that.
func TestAnswersWhileAConnectionIsOpened(t *testing.T) {
	for after, goOn := range map[time.Duration]bool{eventloop.LeastPatience / 2: false, 2 * eventloop.LeastPatience: true} {
		p := proxyTo(t, "127.0.0.1:443", transport.HTTPS)
		o := &opening{since: 1, done: make(chan struct{})}
		c := &httpClient{users: 2, opening: o}
		p.put(t.Context(), c, 1, 1+int64(after), nil)
		if o.over != goOn || c.connected != goOn {
			t.Errorf("after %v: %+v", after, o)
		}
	}
}

// endsOnce is a transport whose connection ends under a request, if it has one, and who finds no other.
type endsOnce struct{ conn net.Conn }

func (e endsOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.conn != nil {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: e.conn})
	}
	return nil, errNoneFree
}

// A request that had a connection, and finds no other one, tells that the connection has ended.
func TestConnectionThatWasHadHasEnded(t *testing.T) {
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	p := proxyTo(t, "127.0.0.1:443", transport.HTTPS)
	for had, want := range map[net.Conn]error{nil: errNoneFree, conn: errNotTaken} {
		c := &httpClient{Client: &http.Client{Transport: endsOnce{had}}, connected: true}
		s := sending{got: func(net.Addr) {}}
		err := p.request(t.Context(), c, &s, http.MethodGet, []byte("query"), new(bytes.Buffer))
		if !errors.Is(err, want) || c.connected != (had == nil) {
			t.Errorf("%v, connected is %v", err, c.connected)
		}
	}
}
