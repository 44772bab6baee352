package quicconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"
)

// codes are some that no protocol has for all that others close connections with.
var codes = Codes{None: 40, TooMany: 44}

// echo is a protocol: each stream brings a word, which comes back behind the label of the server and the client's
// address; "slow" when the gate opens, "later" after a while.
type echo struct {
	slow  chan struct{} // closed to have "slow" answered
	begun chan struct{} // gets one for each "slow"
}

func newEcho() *echo { return &echo{make(chan struct{}), make(chan struct{}, 100)} }

func (e *echo) serve(c *Conn) {
	for {
		stream, err := c.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			s := c.Enter()
			defer s.Inflight.Done()
			c.Occupy()
			defer c.Vacate()
			word, _ := io.ReadAll(stream)
			switch string(word) {
			case "slow":
				e.begun <- struct{}{}
				<-e.slow
			case "later": // when a connection without queries would be closed
				time.Sleep(2 * service.DrainTime)
			}
			fmt.Fprintf(stream, "%s %s %s", s.Label, wire.AddrOf(c.Client()), word)
		}()
	}
}

// serviceFor is a Service that speaks QUIC. Its label is of no other.
func serviceFor(t testing.TB) *service.Service {
	t.Helper()
	s := coretest.Service(t, coretest.Label(t))
	s.Streams = 256
	s.Proto = &Configs{TLS: coretest.Certificate(t, "echo"), QUIC: Config(&s.Limits, s.Idle, false)}
	return s
}

// serve serves echo on loopback.
func serve(t testing.TB, s *service.Service, e *echo) (q *Transport, end func() error) {
	t.Helper()
	p := coretest.ListenUDP(t)
	q, err := Listen(s, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	return q, coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
}

func addrOf(q *Transport) string { return q.packets.LocalAddr().String() }

// dial connects to a server of echo.
func dial(t testing.TB, addr string) *quic.Conn {
	t.Helper()
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"echo"}
	ctx, cancel := context.WithTimeout(t.Context(), clients.AskTime)
	defer cancel()
	c, err := quic.DialAddr(ctx, addr, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseWithError(0, "") })
	return c
}

// said sends a word on a stream of its own; what comes back is there when it is asked for.
func said(t testing.TB, c *quic.Conn, word string) (answer func() string) {
	t.Helper()
	stream, err := c.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream.SetDeadline(time.Now().Add(clients.AskTime))
	io.WriteString(stream, word)
	stream.Close()
	return func() string {
		b, err := io.ReadAll(stream)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
}

// answer is what comes back from a server with that label.
func answer(s *service.Service, word string) string { return s.Label + " 127.0.0.1 " + word }

// closeCode is the code with which the server ends a connection, -1 if it does not.
func closeCode(t testing.TB, c *quic.Conn) int {
	t.Helper()
	select {
	case <-c.Context().Done():
	case <-time.After(clients.AskTime):
		return -1
	}
	var app *quic.ApplicationError
	if err := context.Cause(c.Context()); errors.As(err, &app) && app.Remote {
		return int(app.ErrorCode)
	}
	t.Errorf("the connection ended with %v", context.Cause(c.Context()))
	return -1
}

// Idle connections give way; where all are at work, what comes is told that there are too many.
func TestAdmission(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	s.Connections = 3
	q, _ := serve(t, s, e)
	slow := func() func() string {
		got := said(t, dial(t, addrOf(q)), "slow")
		<-e.begun
		return got
	}
	busy := []func() string{slow(), slow()}
	idle := dial(t, addrOf(q))
	said(t, idle, "hello")()
	next := dial(t, addrOf(q)) // displaces the one before when that has been idle for long enough
	if got := said(t, next, "hello")(); got != answer(s, "hello") {
		t.Errorf("got %s", got)
	}
	if got := closeCode(t, idle); got != int(codes.None) {
		t.Errorf("an idle connection was closed with %d", got)
	}
	busy = append(busy, slow()) // and this one the last
	if got := closeCode(t, next); got != int(codes.None) {
		t.Errorf("the last idle connection was closed with %d", got)
	}
	if got := closeCode(t, dial(t, addrOf(q))); got != int(codes.TooMany) {
		t.Errorf("refused with %d", got)
	}
	close(e.slow)
	for _, got := range busy {
		if got := got(); got != answer(s, "slow") {
			t.Errorf("one at work: got %s", got)
		}
	}
	if n := coretest.Limited(s, "connections"); n != 3 {
		t.Errorf("counted %d", n)
	}
}

// More than a few do not even wait for a place.
func TestTooManyWait(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	s.Connections = 1
	q, _ := serve(t, s, e)
	got := said(t, dial(t, addrOf(q)), "slow")
	<-e.begun
	for range maxWaiting {
		q.waiting <- struct{}{}
	}
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"echo"}
	c, err := quic.DialAddr(t.Context(), addrOf(q), config, nil)
	if err == nil {
		select {
		case <-c.Context().Done():
		case <-time.After(clients.AskTime):
			t.Error("one too many")
		}
	}
	for range maxWaiting {
		<-q.waiting
	}
	close(e.slow)
	if got := got(); got != answer(s, "slow") {
		t.Errorf("got %s", got)
	}
}

// The end waits for what is at work, then closes the connections; those who come meanwhile find nobody.
func TestStop(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	q, end := serve(t, s, e)
	c := dial(t, addrOf(q))
	got := said(t, c, "slow")
	<-e.begun
	ended := coretest.Stopping(t, end)
	if !s.Inflight.Busy() {
		t.Error("its server knows of no query")
	}
	close(e.slow)
	if got := got(); got != answer(s, "slow") {
		t.Errorf("got %s", got)
	}
	ended()
	if got := closeCode(t, c); got != int(codes.None) {
		t.Errorf("closed with %d", got)
	}
}

// It does not wait longer than it may.
func TestStopGivesUp(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	defer close(e.slow)
	p := coretest.ListenUDP(t)
	q, err := Listen(s, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- q.Serve(s, e.serve) }()
	c := dial(t, addrOf(q))
	said(t, c, "slow")
	<-e.begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Stop(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil || closeCode(t, c) != int(codes.None) {
		t.Errorf("serving ended with %v", err)
	}
}

// In a reload the next server goes on with the connections, and new ones get its configuration.
func TestNextServerTakesOver(t *testing.T) {
	first, second, e := serviceFor(t), serviceFor(t), newEcho()
	p := coretest.ListenUDP(t)
	q, err := Listen(first, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- q.Serve(first, e.serve) }()
	c := dial(t, addrOf(q))
	slow := said(t, c, "slow")
	<-e.begun
	other := coretest.Certificate(t, "echo", "other")
	second.Proto.(*Configs).TLS = other
	if !q.Fits(second, false) {
		t.Error("does not fit")
	}
	q.Sit(second)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := q.Serve(first, e.serve); err != nil { // too late
		t.Error(err)
	}
	coretest.Serving(t, q, func() error { return q.Serve(second, e.serve) })
	if got := said(t, c, "hello")(); got != answer(second, "hello") {
		t.Errorf("got %s", got)
	}
	let := make(chan error)
	go func() { let <- first.LetGo(t.Context(), []service.Heirloom{q}) }()
	select {
	case err := <-let:
		t.Errorf("its query is not over: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(e.slow)
	if got := slow(); got != answer(first, "slow") {
		t.Errorf("got %s", got)
	}
	if err := <-let; err != nil {
		t.Error(err)
	}
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"other"}
	fresh, err := quic.DialAddr(t.Context(), addrOf(q), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, fresh, "hello")(); got != answer(second, "hello") {
		t.Errorf("got %s", got)
	}
}

// A transport takes over the socket of another one, as where a reload cannot go on with that: clients of the first
// learn at once that their connections are over, and connect again.
func TestAnotherTakesTheSocket(t *testing.T) {
	p, e := coretest.ListenUDP(t), newEcho()
	file, err := p.File()
	if err != nil {
		t.Fatal(err)
	}
	handed, err := net.FilePacketConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	first, second := serviceFor(t), serviceFor(t)
	q, err := Listen(first, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	end := coretest.Serving(t, q, func() error { return q.Serve(first, e.serve) })
	c := dial(t, addrOf(q))
	if got := said(t, c, "hello")(); got != answer(first, "hello") {
		t.Errorf("got %s", got)
	}
	next, err := Listen(second, handed, handed, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, next, func() error { return next.Serve(second, e.serve) })
	if err := end(); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Context().Done():
	case <-time.After(clients.AskTime):
		t.Error("the client does not know")
	}
	if got := said(t, dial(t, addrOf(next)), "hello")(); got != answer(second, "hello") {
		t.Errorf("got %s", got)
	}
}

func TestFits(t *testing.T) {
	lets := func(t *testing.T, c tls.ClientAuthType) *service.Service {
		s := serviceFor(t)
		s.Proto.(*Configs).TLS.ClientAuth = c
		return s
	}
	for _, tc := range []struct {
		a, b    tls.ClientAuthType
		proxied bool
		want    bool
	}{
		{tls.NoClientCert, tls.NoClientCert, false, true},
		{tls.NoClientCert, tls.NoClientCert, true, false},
		{tls.NoClientCert, tls.RequireAnyClientCert, false, false},
		{tls.RequireAnyClientCert, tls.RequireAnyClientCert, false, false},
	} {
		q := new(Transport)
		q.Seat.Sit(lets(t, tc.a))
		if got := q.Fits(lets(t, tc.b), tc.proxied); got != tc.want || q.Holds(q.Now()) {
			t.Errorf("%+v: got %v", tc, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		streams int
		library bool
		want    int64
	}{{7, false, 7}, {7, true, 7}, {0, true, 0}, {0, false, 1<<31 - 1}} {
		l := &service.Limits{Streams: tc.streams, Handshake: time.Second}
		c := Config(l, time.Minute, tc.library)
		if c.MaxIncomingStreams != tc.want || c.HandshakeIdleTimeout != time.Second || c.MaxIdleTimeout != time.Minute || !c.Allow0RTT {
			t.Errorf("%+v: got %+v", tc, c)
		}
	}
}

// Where memory has a limit, a connection may have fewer streams, the more others there are, unless a number was asked for.
func TestStreamsByMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(64 << 20))
	for set, want := range map[bool][]int{false: {128, 64, 42}, true: {256, 256, 256}} {
		s := serviceFor(t)
		s.StreamsSet = set
		q, _ := serve(t, s, newEcho())
		var got []int
		for range want {
			c := dial(t, addrOf(q))
			eventually.Holds(t, "it has its place", func() bool { return q.admission.Len() == len(got)+1 })
			n := 0
			for _, err := c.OpenStream(); err == nil; _, err = c.OpenStream() {
				n++
			}
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("set: %t: %v streams, want %v", set, got, want)
		}
	}
}

// proxySender puts a PROXY header before each datagram that it sends.
type proxySender struct{ net.PacketConn }

const proxyUDP = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a\x21\x12\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"

func (p proxySender) WriteTo(b []byte, addr net.Addr) (int, error) {
	n, err := p.PacketConn.WriteTo(append([]byte(proxyUDP), b...), addr)
	return n - len(proxyUDP), err
}

// The client is the one of whom a proxy tells.
func TestProxy(t *testing.T) {
	p := coretest.ListenUDP(t)
	s, e := serviceFor(t), newEcho()
	q, err := Listen(s, p, &pkgproxyproto.PacketConn{
		PacketConn: p, Refused: func(pkgproxyproto.Reason) {},
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return proxyproto.USE, nil },
	}, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	if !q.Fits(s, true) || q.Fits(s, false) {
		t.Error("it is not known that headers are read")
	}
	tr := &quic.Transport{Conn: proxySender{coretest.ListenUDP(t)}}
	defer tr.Close()
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"echo"}
	c, err := tr.Dial(t.Context(), p.LocalAddr(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := said(t, c, "hello")(), s.Label+" 198.51.100.7 hello"; got != want {
		t.Errorf("got %s", got)
	}
	if got := said(t, dial(t, addrOf(q)), "hello")(); got != answer(s, "hello") {
		t.Errorf("without a proxy: got %s", got)
	}
}

// narrow is a link that takes 1280 octets: with the headers of IPv6 and UDP, datagrams of 1232.
type narrow struct{ net.PacketConn }

func (n narrow) WriteTo(b []byte, addr net.Addr) (int, error) {
	if len(b) > 1232 {
		return len(b), nil
	}
	return n.PacketConn.WriteTo(b, addr)
}

// Clients come in over the narrowest link of IPv6.
func TestNarrowLink(t *testing.T) {
	p := narrow{coretest.ListenUDP(t)}
	s, e := serviceFor(t), newEcho()
	q, err := Listen(s, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, q, func() error { return q.Serve(s, e.serve) })
	config := clients.Trusting.Clone()
	config.NextProtos = []string{"echo"}
	ctx, cancel := context.WithTimeout(t.Context(), clients.AskTime)
	defer cancel()
	c, err := quic.DialAddr(ctx, addrOf(q), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseWithError(0, "")
	word := strings.Repeat("hello", 2000)
	if got := said(t, c, word)(); got != answer(s, word) {
		t.Errorf("got %d octets: %.40s", len(got), got)
	}
}

// A connection is known as long as it lasts.
func TestForgotten(t *testing.T) {
	s, e := serviceFor(t), newEcho()
	known := make(chan bool, 1)
	p := coretest.ListenUDP(t)
	q, err := Listen(s, p, p, codes)
	if err != nil {
		t.Fatal(err)
	}
	coretest.Serving(t, q, func() error {
		return q.Serve(s, func(c *Conn) {
			q.mu.Lock()
			_, ok := q.conns[c]
			q.mu.Unlock()
			known <- ok && c.Service() == s
			e.serve(c)
		})
	})
	c := dial(t, addrOf(q))
	if !<-known {
		t.Error("is not known")
	}
	c.CloseWithError(0, "")
	eventually.Holds(t, "it is forgotten", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.conns) == 0
	})
}

// A connection is idle since its last query was answered, and not while one is at work.
func TestIdleSince(t *testing.T) {
	c := new(Conn)
	if since, idle := c.IdleSince(); since != 0 || !idle {
		t.Errorf("since %d, idle %v", since, idle)
	}
	c.Occupy()
	if _, idle := c.IdleSince(); idle {
		t.Error("idle with a query at work")
	}
	began := service.Now()
	c.Vacate()
	if since, idle := c.IdleSince(); since < began || !idle {
		t.Errorf("since %d, before %d; idle %v", since, began, idle)
	}
}

// What the library cannot serve has its socket closed.
func TestListenFails(t *testing.T) {
	s := serviceFor(t)
	p := coretest.ListenUDP(t)
	p.Close()
	if _, err := Listen(s, p, p, codes); err == nil {
		t.Error("listens on a socket that is closed")
	}
}

// A socket that is kept from blocking is read in batches, and told about congestion, as any other one is.
func TestPacketsAreReadInBatches(t *testing.T) {
	if _, ok := nonblock.Packets(coretest.ListenUDP(t)).(quic.OOBCapablePacketConn); !ok {
		t.Error("the library reads one packet at a time")
	}
}
