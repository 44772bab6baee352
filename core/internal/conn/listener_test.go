package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

// connect opens a connection of lines, with TLS if there is a configuration.
func connect(t *testing.T, addr string, config *tls.Config) net.Conn {
	t.Helper()
	c := coretest.Dial(t, addr)
	if config != nil {
		c = tls.Client(c, clients.Trusting)
	}
	return c
}

func TestHandshakeTime(t *testing.T) {
	s := lineService(t)
	s.Handshake = 150 * time.Millisecond
	_, addr, _ := serveLines(t, s, newLineServer(), coretest.Certificate(t), nil)
	begin := time.Now()
	c := coretest.Dial(t, addr)
	io.WriteString(c, "\x16\x03\x01\x02\x00") // the begin of a record
	if !coretest.ClosedAfter(t, c, begin, s.Handshake) || coretest.Limited(s, "handshake_time") != 1 {
		t.Errorf("after %v, counted %d", time.Since(begin), coretest.Limited(s, "handshake_time"))
	}
	c = coretest.Dial(t, addr)
	io.WriteString(c, "GET / HTTP/1.0\r\n\r\n") // no time is over then
	if coretest.ClosedAfter(t, c, begin, 0); coretest.Limited(s, "handshake_time") != 1 {
		t.Errorf("counted %d", coretest.Limited(s, "handshake_time"))
	}
}

// A client may be idle as long as the protocol says, from the begin of the read that waits.
func TestIdleTime(t *testing.T) {
	s := lineService(t)
	s.Idle = 200 * time.Millisecond
	_, addr, _ := serveLines(t, s, newLineServer(), nil, nil)
	begin := time.Now()
	c := coretest.Dial(t, addr)
	if got := told(t, c, "who"); got != "127.0.0.1" {
		t.Errorf("got %s", got)
	}
	if !coretest.ClosedAfter(t, c, begin, s.Idle) {
		t.Errorf("after %v", time.Since(begin))
	}
}

// Idle connections give way to new ones; those at work do not.
func TestIdleGiveWay(t *testing.T) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t)} {
		s, of := lineService(t), newLineServer()
		s.Connections = 5
		_, addr, _ := serveLines(t, s, of, config, nil)
		var busy []net.Conn
		for range 2 {
			c := connect(t, addr, config)
			fmt.Fprintln(c, "slow")
			<-of.begun
			busy = append(busy, c)
		}
		for range 20 {
			coretest.Dial(t, addr)
		}
		if got := told(t, connect(t, addr, config), "who"); got != "127.0.0.1" {
			t.Errorf("%s: got %s", name, got)
		}
		close(of.slow)
		for _, c := range busy {
			if got := next(c); got != "slow" {
				t.Errorf("%s: a connection at work was closed: %s", name, got)
			}
		}
		if n := coretest.Limited(s, "connections"); n != 18 {
			t.Errorf("%s: counted %d", name, n)
		}
	}
}

// A client with as many connections as it may have gets no more, until one of them has been idle for long.
func TestClientConnections(t *testing.T) {
	was := idleTime
	defer func() { idleTime = was }()
	idleTime = time.Hour
	s := lineService(t)
	s.Client = 3
	l, addr, end := serveLines(t, s, newLineServer(), nil, nil)
	defer end() // before idleTime changes back
	for range s.Client {
		coretest.Dial(t, addr)
	}
	for range 7 {
		if c := coretest.Dial(t, addr); !closed(c) {
			t.Error("one too many")
		}
	}
	if n := coretest.Limited(s, "client_connections"); n != 7 {
		t.Errorf("counted %d", n)
	}
	l.admission.mu.Lock()
	l.admission.now = func() int64 { return service.Now() + int64(2*idleTime) }
	l.admission.mu.Unlock()
	if got := told(t, coretest.Dial(t, addr), "who"); got != "127.0.0.1" {
		t.Errorf("when the others have been idle: got %s", got)
	}
}

// The end of a listener waits for queries at work, and takes no more connections.
func TestStopWaits(t *testing.T) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": coretest.Certificate(t)} {
		s, of := lineService(t), newLineServer()
		s.Idle = time.Hour
		_, addr, end := serveLines(t, s, of, config, nil)
		c := connect(t, addr, config)
		fmt.Fprintln(c, "slow")
		<-of.begun
		idle := connect(t, addr, config)
		if got := told(t, idle, "who"); got != "127.0.0.1" {
			t.Errorf("%s: got %s", name, got)
		}
		ended := coretest.Stopping(t, end)
		if !closed(idle) {
			t.Errorf("%s: an idle connection stays", name)
		}
		if late, err := net.Dial("tcp", addr); err == nil {
			late.Close()
			t.Errorf("%s: the listener is still there", name)
		}
		close(of.slow)
		if got := next(c); got != "slow" || !closed(c) {
			t.Errorf("%s: got %s", name, got)
		}
		ended()
	}
}

// The end of a listener waits as long as it may, and then ends its connections.
func TestStopGivesUp(t *testing.T) {
	s, of := lineService(t), newLineServer()
	defer close(of.slow)
	from := coretest.ListenTCP(t)
	l := NewListener(s, ClientAuth{})
	l.ListenOn(from)
	served := make(chan error)
	go func() { served <- l.Serve(from, Handler{New: of.New}) }()
	c := coretest.Dial(t, from.Addr().String())
	fmt.Fprintln(c, "slow")
	<-of.begun
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := l.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil || !closed(c) {
		t.Errorf("serving ended with %v", err)
	}
}

// beside notes that it was stopped.
type beside struct{ stopped chan struct{} }

func (b beside) Stop(context.Context) error {
	close(b.stopped)
	return nil
}

// What belongs to a listener is stopped with it, also when the process leaves its addresses to another one.
func TestStopWithBeside(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		s := lineService(t)
		s.Leaving.Store(leaving)
		l, addr, end := serveLines(t, s, newLineServer(), nil, nil)
		b := beside{make(chan struct{})}
		l.Beside = b
		c := coretest.Dial(t, addr)
		if got := told(t, c, "who"); got != "127.0.0.1" {
			t.Errorf("got %s", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		select {
		case <-b.stopped:
		default:
			t.Error("is not stopped")
		}
	}
}

// In a reload the next server goes on with the connections: a query belongs to the one with which it began.
func TestNextServerTakesOver(t *testing.T) {
	of := newLineServer()
	first, second := lineService(t), lineService(t)
	l, addr, _ := serveLines(t, first, of, nil, nil)
	c := coretest.Dial(t, addr)
	fmt.Fprintln(c, "who")
	if got := word(c, 0); got != first.Label {
		t.Errorf("%s answered", got)
	}
	fmt.Fprintln(c, "slow")
	<-of.begun
	l.Sit(second)
	from := coretest.ListenTCP(t)
	l.ListenOn(from)
	served := make(chan error)
	go func() { served <- l.Serve(from, Handler{New: of.New}) }()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the first one's listener is still there")
	}
	let := make(chan error)
	go func() { let <- first.LetGo(t.Context(), []service.Heirloom{l}) }()
	select {
	case err := <-let:
		t.Errorf("its query is not over: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(of.slow)
	if got := word(c, 0); got != first.Label {
		t.Errorf("%s answered what began with the first one", got)
	}
	if err := <-let; err != nil {
		t.Error(err)
	}
	for _, c := range []net.Conn{c, coretest.Dial(t, from.Addr().String())} {
		fmt.Fprintln(c, "who")
		if got := word(c, 0); got != second.Label {
			t.Errorf("%s answered", got)
		}
	}
	eventually.Holds(t, "nobody is held by a connection that waits", func() bool { return !l.Holds(second) })
	if l.Holds(first) {
		t.Error("the first one is held")
	}
	from.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// word is word i of the next answer.
func word(c net.Conn, i int) string {
	b := make([]byte, 1000)
	n, _ := c.Read(b)
	f := strings.Fields(string(b[:n]))
	if i >= len(f) {
		return "no answer"
	}
	return f[i]
}

func TestClientAuth(t *testing.T) {
	plain, lets := &tls.Config{}, &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	for _, tc := range []struct {
		a, b *tls.Config
		same bool
	}{
		{nil, nil, true},
		{plain, plain.Clone(), true},
		{nil, plain, false},
		{plain, lets, false},
		{lets, lets, false}, // whether the second would let that client in is not known
	} {
		l := NewListener(lineService(t), ClientAuthOf(tc.a))
		if got := l.Fits(ClientAuthOf(tc.b)); got != tc.same {
			t.Errorf("%v and %v: got %v", ClientAuthOf(tc.a), ClientAuthOf(tc.b), got)
		}
	}
}

func TestConfigFor(t *testing.T) {
	own, failure := new(tls.Config), errors.New("as asked")
	plain := new(tls.Config)
	for _, tc := range []struct {
		get  func(*tls.ClientHelloInfo) (*tls.Config, error)
		want *tls.Config
		err  error
	}{
		{nil, plain, nil},
		{func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }, plain, nil},
		{func(*tls.ClientHelloInfo) (*tls.Config, error) { return own, nil }, own, nil},
		{func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, failure }, nil, failure},
	} {
		plain.GetConfigForClient = tc.get
		if got, err := ConfigFor(plain, nil); got != tc.want || err != tc.err {
			t.Errorf("got %p, %v, want %p, %v", got, err, tc.want, tc.err)
		}
	}
}

// TestSpareGoroutines: a goroutine whose connection is over serves the next one, a few wait at most, and none when the
// listener has stopped.
func TestSpareGoroutines(t *testing.T) {
	s := lineService(t)
	l, addr, _ := serveLines(t, s, newLineServer(), nil, nil)
	await := func(what string, is func(n int32) bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); !is(l.spares.Load()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d goroutines wait", what, l.spares.Load())
			}
		}
	}
	for range 5 {
		c := coretest.Dial(t, addr)
		if got := told(t, c, "who"); got != "127.0.0.1" {
			t.Errorf("got %s", got)
		}
		await("at work", func(n int32) bool { return n == 0 })
		c.Close()
		await("over", func(n int32) bool { return n == 1 })
	}
	var many []net.Conn
	for range 3 * maxSpare {
		c := coretest.Dial(t, addr)
		told(t, c, "who")
		many = append(many, c)
	}
	for _, c := range many {
		c.Close()
	}
	await("after many", func(n int32) bool { return n == maxSpare })
	l.Stop(t.Context())
	await("stopped", func(n int32) bool { return n == 0 })
}
