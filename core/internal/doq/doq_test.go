package doq

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

func TestAnswers(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	for name, want := range map[string]string{
		"www.":        "NOERROR 192.0.2.1",
		"unpack.":     "NOERROR 192.0.2.3",
		"block.":      "NOERROR 192.0.2.2",
		"park.":       "NOERROR 192.0.2.2",
		"parkunpack.": "NOERROR 192.0.2.3",
		"fail.":       "REFUSED",
		"panic.":      "SERVFAIL",
		"local.":      "NOERROR 127.0.0.1",
		"client.":     "NOERROR 127.0.0.1",
	} {
		r, err := c.Ask(coretest.Query(name))
		if err != nil || coretest.Describe(r) != want || r.Question[0].Name != name {
			t.Errorf("%s: got %s, %v, want %s", name, coretest.Describe(r), err, want)
		}
	}
	if r, err := c.Ask(coretest.Query("long.")); err != nil || len(r.Answer) != 200 || r.Truncated {
		t.Errorf("long: %v, %v", r, err)
	}
}

func TestProtocolErrors(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, func(s *service.Service) { s.Read, s.QueryBytes = time.Second, 1000 })
	good := query("www.")
	withID := query("www.")
	withID.Id = 7
	keepalive := good.Copy().SetEdns0(1232, false)
	keepalive.IsEdns0().Option = []dns.EDNS0{
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID}, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE},
	}
	reply := good.Copy()
	reply.Response = true
	frame, packed := framed(t, good), coretest.Packed(t, good)
	for name, tc := range map[string]struct {
		b     []byte
		end   bool
		limit string
	}{
		"nothing":            {nil, true, ""},
		"half a length":      {frame[:1], true, ""},
		"length 0":           {[]byte{0, 0}, true, ""},
		"cut":                {frame[:len(frame)-1], true, ""},
		"message id":         {framed(t, withID), true, ""},
		"keepalive":          {framed(t, keepalive), true, ""},
		"a reply":            {framed(t, reply), true, ""},
		"header only":        {Frame(packed[:12]), true, ""},
		"eleven octets":      {Frame(packed[:11]), true, ""},
		"does not parse":     {Frame(packed[:20]), true, ""},
		"too long":           {Frame(make([]byte, 1001)), true, "query_bytes"},
		"its length is told": {[]byte{0xFF, 0xFF}, false, "query_bytes"},
		"too slow":           {frame[:len(frame)-1], false, "read_time"},
		"nothing for a time": {frame[:2], false, "read_time"},
	} {
		bad := s.counted("0x2")
		late, long := coretest.Limited(s.Service, "read_time"), coretest.Limited(s.Service, "query_bytes")
		c := clients.DialQUIC(t, s.addr)
		send(t, c.Conn, tc.b, tc.end)
		if got := closeCode(t, c.Conn); got != int(CodeProtocolError) {
			t.Errorf("%s: got code %d", name, got)
		}
		if n := s.counted("0x2") - bad; n != 1 {
			t.Errorf("%s: counted %d", name, n)
		}
		late, long = coretest.Limited(s.Service, "read_time")-late, coretest.Limited(s.Service, "query_bytes")-long
		if (late == 1) != (tc.limit == "read_time") || (long == 1) != (tc.limit == "query_bytes") {
			t.Errorf("%s: read_time counted %d, query_bytes %d", name, late, long)
		}
	}
}

func TestStreams(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	// The end of the stream is not waited for.
	if b, err := clients.ReadFrame(send(t, c.Conn, framed(t, query("www.")), false)); err != nil || len(b) == 0 {
		t.Errorf("got %x, %v", b, err)
	}
	// A query that gets no answer has its stream reset.
	if got := resetCode(send(t, c.Conn, framed(t, query("drop.")), true)); got != int(streamCancelled) {
		t.Errorf("got code %d", got)
	}
	// A client that changes its mind does no harm.
	send(t, c.Conn, []byte{0}, false).CancelWrite(streamCancelled)
	if r, err := c.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	eventually.Holds(t, "three are counted, after their replies", func() bool { return s.counted("0x0") == 3 })
	// And one that goes, neither.
	c.Close()
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if n := s.counted("0x1") + s.counted("0x2"); n != 0 {
		t.Errorf("counted %d errors", n)
	}
}

// The end of a stream may come behind its answer: the client may open another one then, as often as it likes. One that
// never ends its streams is helped out of that, and what it sends behind its query is not wanted.
func TestStreamsEndLater(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, func(s *service.Service) { s.Streams, s.Read = 2, 200*time.Millisecond })
	for name, after := range map[string]func(*quic.Stream){
		"the end":  func(stream *quic.Stream) { stream.Close() },
		"nothing":  func(*quic.Stream) {},
		"too much": func(stream *quic.Stream) { stream.Write(make([]byte, 2*8192)) },
	} {
		c := clients.DialQUIC(t, s.addr)
		for i := range 10 {
			stream := send(t, c.Conn, framed(t, query("www.")), false)
			if b, err := clients.ReadFrame(stream); err != nil || len(b) == 0 {
				t.Fatalf("%s, %d: got %x, %v", name, i, b, err)
			}
			after(stream)
		}
	}
}

// No query waits for others of its connection, nor for streams on which nothing comes, as far as these are few.
func TestFastQueryDoesNotWait(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, 100, nil)
	c := clients.DialQUIC(t, s.addr)
	var slow sync.WaitGroup
	for range 3 {
		slow.Go(func() {
			if r, err := c.Ask(coretest.Query("slow.")); err != nil || len(r.Answer) != 1 {
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
	g.Holds(t, 3)
	for range maxReaders - 1 {
		send(t, c.Conn, []byte{0}, false)
	}
	if r, err := c.Ask(coretest.Query("fast.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	g.Open()
	slow.Wait()
}

// The context of a query ends with its stream.
func TestClientDoesNotWait(t *testing.T) {
	began, cancelled := make(chan struct{}, 1), make(chan error, 1)
	s := serve(t, coretest.UntilCancelled(began, cancelled), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	stream := send(t, c.Conn, framed(t, query("www.")), true)
	<-began
	stream.CancelRead(quic.StreamErrorCode(CodeNoError))
	select {
	case <-cancelled:
	case <-time.After(clients.AskTime):
		t.Error("the query goes on")
	}
}

// TestTransfer has a reply of several messages.
func TestTransfer(t *testing.T) {
	s := serve(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		for range 3 {
			if err := w.WriteMsg(new(dns.Msg).SetReply(r)); err != nil {
				return dns.RcodeServerFailure, err
			}
		}
		return 0, nil
	}), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	for qtype, want := range map[uint16]int{dns.TypeAXFR: 3, dns.TypeIXFR: 3, dns.TypeA: 1} {
		m := new(dns.Msg).SetQuestion("example.org.", qtype)
		m.Id = 0
		stream := send(t, c.Conn, framed(t, m), true)
		n := 0
		for ; ; n++ {
			if _, err := clients.ReadFrame(stream); err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
		}
		if n != want {
			t.Errorf("%s: %d messages", dns.TypeToString[qtype], n)
		}
	}
}

// A plugin that writes octets of its own is understood, with lengths before its messages and without, and the stream ends.
func TestWrite(t *testing.T) {
	s := serve(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		b := coretest.Packed(t, new(dns.Msg).SetReply(r))
		n := len(b)
		if r.Question[0].Name != "plain." {
			b = Frame(b)
			if r.Question[0].Name == "two." {
				b = append(b, b...)
			}
			n = len(b)
		}
		if got, err := w.Write(b); got != n || err != nil {
			t.Errorf("%s %d of %d octets, %v", r.Question[0].Name, got, n, err)
		}
		return 0, nil
	}), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	for name, want := range map[string]int{"plain.": 1, "framed.": 1, "two.": 2} {
		stream := send(t, c.Conn, framed(t, query(name)), true)
		got, err := io.ReadAll(stream)
		if reply := Frame(coretest.Packed(t, new(dns.Msg).SetReply(query(name)))); err != nil || !bytes.Equal(got, bytes.Repeat(reply, want)) {
			t.Errorf("%s got %x, %v", name, got, err)
		}
	}
}

// As many queries are served at one time as there are workers, of all connections.
func TestWorkers(t *testing.T) {
	var now, most atomic.Int32
	s := serve(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(10 * time.Millisecond)
		return coretest.Echo(ctx, w, r)
	}), 1, nil)
	var wg sync.WaitGroup
	for range 3 {
		c := clients.DialQUIC(t, s.addr)
		for range 3 {
			wg.Go(func() {
				if _, err := c.Ask(coretest.Query("www.")); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d queries at one time", n)
	}
}

// Where too many queries of the process wait, a client is told on its stream, and may ask again.
func TestCrowded(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, 100, nil)
	c := clients.DialQUIC(t, s.addr)
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Ask(coretest.Query("slow.")); err != nil {
			t.Error(err)
		}
	})
	g.Holds(t, 1)
	late := send(t, c.Conn, framed(t, query("www.")), true)
	late.CancelRead(streamCancelled) // it does not wait for a place
	eventually.Holds(t, "it is counted", func() bool { return coretest.Limited(s.Service, "waiting") == 1 })
	g.Open()
	wg.Wait()
	if r, err := c.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
}

// TestUnsent has replies that the process has no room for: their streams are reset.
func TestUnsent(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	unsent.SetMax(100)
	defer unsent.SetMax(memory.MaxUnsent)
	if _, err := c.Ask(coretest.Query("www.")); err != nil {
		t.Errorf("a short one: %v", err)
	}
	got := resetCode(send(t, c.Conn, framed(t, query("long.")), true))
	if n := coretest.Limited(s.Service, "in_flight_bytes"); got != int(streamInternal) || n != 1 {
		t.Errorf("a long one: code %d, counted %d", got, n)
	}
	eventually.Holds(t, "nothing is left in the ledger", func() bool { return unsent.Octets() == 0 })
}

// TestUnread has a client that takes nothing: the stream ends when it has had its time.
func TestUnread(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, func(s *service.Service) { s.Write = 200 * time.Millisecond })
	stream := send(t, deaf(t, s.addr), framed(t, query("long.")), true)
	eventually.Holds(t, "it is counted", func() bool { return coretest.Limited(s.Service, "write_time") == 1 })
	if got := resetCode(stream); got != int(streamCancelled) {
		t.Errorf("got code %d", got)
	}
}

// Connections that are idle for too long end well, and are counted.
func TestIdleTime(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, func(s *service.Service) { s.Idle = 300 * time.Millisecond })
	c := clients.DialQUIC(t, s.addr)
	if _, err := c.Ask(coretest.Query("www.")); err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "it is counted", func() bool { return coretest.Limited(s.Service, "idle_time") == 1 })
	if n := s.counted("0x1"); n != 0 {
		t.Errorf("counted %d internal errors", n)
	}
}

// A server that stops answers what is at work, and says that nothing is wrong.
func TestStops(t *testing.T) {
	g := coretest.NewGate(t)
	s := serve(t, g, 100, nil)
	c := clients.DialQUIC(t, s.addr)
	done := make(chan error)
	go func() {
		_, err := c.Ask(coretest.Query("slow."))
		done <- err
	}()
	g.Holds(t, 1)
	ended := coretest.Stopping(t, s.end)
	g.Open()
	if err := <-done; err != nil {
		t.Error(err)
	}
	ended()
	if got := closeCode(t, c.Conn); got != int(CodeNoError) {
		t.Errorf("closed with %d", got)
	}
}

// TestEarlyData asks in the first packet of a connection that was known before.
func TestEarlyData(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	tickets := &ticketCache{ClientSessionCache: tls.NewLRUClientSessionCache(1), put: make(chan struct{}, 10)}
	config := clients.Trusting.Clone()
	config.NextProtos, config.ClientSessionCache = []string{"doq"}, tickets
	for _, early := range []bool{false, true} {
		c, err := quic.DialAddrEarly(t.Context(), s.addr, config, &quic.Config{TokenStore: quic.NewLRUTokenStore(1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		client := &clients.QUICClient{Conn: c}
		if r, err := client.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
			t.Errorf("got %v, %v", r, err)
		}
		if got := c.ConnectionState().Used0RTT; got != early {
			t.Errorf("0-RTT: %t, want %t", got, early)
		}
		<-tickets.put
		client.Close()
	}
}

// ticketCache tells when a session ticket has come.
type ticketCache struct {
	tls.ClientSessionCache
	put chan struct{}
}

func (c *ticketCache) Put(key string, s *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, s)
	c.put <- struct{}{}
}

func TestFrame(t *testing.T) {
	for _, n := range []int{0, 1, 65535} {
		b := Frame(make([]byte, n))
		if len(b) != 2+n || int(binary.BigEndian.Uint16(b)) != n {
			t.Errorf("%d octets: got %d, length %d", n, len(b), binary.BigEndian.Uint16(b))
		}
	}
}

func TestHasKeepalive(t *testing.T) {
	m := query("www.").SetEdns0(1232, false)
	if hasKeepalive(coretest.Packed(t, m)) || hasKeepalive(coretest.Packed(t, query("www."))) || hasKeepalive(nil) {
		t.Error("found what is not there")
	}
	for _, o := range []dns.EDNS0{
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID}, &dns.EDNS0_PADDING{Padding: make([]byte, 3)},
		&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE},
	} {
		m.IsEdns0().Option = append(m.IsEdns0().Option, o)
	}
	if !hasKeepalive(coretest.Packed(t, m)) {
		t.Error("not found")
	}
}

func TestIsTransfer(t *testing.T) {
	for qtype, want := range map[uint16]bool{dns.TypeAXFR: true, dns.TypeIXFR: true, dns.TypeA: false, dns.TypeANY: false} {
		b := coretest.Packed(t, new(dns.Msg).SetQuestion("example.org.", qtype))
		if got := isTransfer(b); got != want {
			t.Errorf("%s: got %v", dns.TypeToString[qtype], got)
		}
		for n := range len(b) - 2 {
			if isTransfer(b[:n]) {
				t.Errorf("%d octets are one", n)
			}
		}
	}
}

func TestReadQuery(t *testing.T) {
	s := &service.Service{Label: coretest.Label(t)}
	s.QueryBytes = 50
	for name, tc := range map[string]struct {
		b    []byte
		want string
		is   error
	}{
		"good":          {framed(t, query("www.")), "", nil},
		"with the next": {append(framed(t, query("www.")), 1, 2, 3), "", nil},
		"nothing":       {nil, "length: EOF", io.EOF},
		"length 0":      {[]byte{0, 0}, "length is zero", nil},
		"too long":      {Frame(make([]byte, 51)), service.ErrLong.Error(), service.ErrLong},
		"cut":           {[]byte{0, 5, 1}, "message: unexpected EOF", io.ErrUnexpectedEOF},
		"id":            {Frame([]byte{0, 1, 2}), "message id is not zero", nil},
	} {
		b, err := readQuery(s, bytes.NewReader(tc.b))
		switch {
		case tc.want == "" && (err != nil || !bytes.Equal(b, coretest.Packed(t, query("www.")))):
			t.Errorf("%s: got %x, %v", name, b, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is)):
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
	if n := coretest.Limited(s, "query_bytes"); n != 1 {
		t.Errorf("counted %d", n)
	}
}

// FuzzReadQuery reads anything from a stream.
func FuzzReadQuery(f *testing.F) {
	s := new(service.Service)
	m := query("www.").SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}}
	f.Add(framed(f, m))
	f.Fuzz(func(t *testing.T, b []byte) {
		packet, err := readQuery(s, bytes.NewReader(b))
		if err != nil {
			return
		}
		isTransfer(packet)
		m := new(dns.Msg)
		if m.Unpack(packet) != nil || len(packet) < 12 {
			return
		}
		if m.Id != 0 {
			t.Fatalf("%x: id %d", b, m.Id)
		}
	})
}

// Where too much of long queries has come, whose ends have not, one costs its stream; others are answered.
func TestManyLongQueries(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(quicconn.IncomingShare * 50_000))
	s := serve(t, new(coretest.Lane), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	long := Frame(make([]byte, 60_000))
	if code := resetCode(send(t, c.Conn, long[:len(long)-1], false)); code != int(streamInternal) || coretest.Limited(s.Service, "waiting") != 1 {
		t.Errorf("code %d, counted %d", code, coretest.Limited(s.Service, "waiting"))
	}
	if r, err := c.Ask(coretest.Query("www.")); err != nil || coretest.Describe(r) != "NOERROR 192.0.2.1" {
		t.Errorf("got %v, %v", r, err)
	}
}
