package dnsserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
)

func quicCount(s *served, code string) int {
	return int(testutil.ToFloat64(vars.QUICResponsesCount.WithLabelValues(s.base().Addr, code)))
}

// closeCode is the application's code with which the server ends a connection, -1 if it does not.
func closeCode(t *testing.T, conn *quic.Conn) int {
	t.Helper()
	select {
	case <-conn.Context().Done():
	case <-time.After(clients.AskTime):
		return -1
	}
	var app *quic.ApplicationError
	if err := context.Cause(conn.Context()); errors.As(err, &app) && app.Remote {
		return int(app.ErrorCode)
	}
	t.Errorf("the connection ended with %v", context.Cause(conn.Context()))
	return -1
}

// sendStream sends octets on a stream of its own.
func sendStream(t *testing.T, conn *quic.Conn, b []byte, end bool) *quic.Stream {
	t.Helper()
	stream, err := conn.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream.SetDeadline(time.Now().Add(clients.AskTime))
	stream.Write(b)
	if end {
		stream.Close()
	}
	return stream
}

func TestDoQProtocolErrors(t *testing.T) {
	cfg := blockFor(t, "quic", new(laneHandler))
	cfg.ReadTimeout = time.Second
	s := serving(t, cfg)
	good := query("www.")
	good.Id = 0
	withID := query("www.")
	withID.Id = 7
	keepalive := good.Copy().SetEdns0(1232, false)
	keepalive.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}}
	reply := good.Copy()
	reply.Response = true
	frame := AddPrefix(packed(t, good))
	for name, tc := range map[string]struct {
		b    []byte
		end  bool
		late bool
	}{
		"nothing":            {nil, true, false},
		"half a length":      {frame[:1], true, false},
		"length 0":           {[]byte{0, 0}, true, false},
		"cut":                {frame[:len(frame)-1], true, false},
		"message id":         {AddPrefix(packed(t, withID)), true, false},
		"keepalive":          {AddPrefix(packed(t, keepalive)), true, false},
		"a reply":            {AddPrefix(packed(t, reply)), true, false},
		"header only":        {AddPrefix(packed(t, good)[:12]), true, false},
		"eleven octets":      {AddPrefix(packed(t, good)[:11]), true, false},
		"does not parse":     {AddPrefix(packed(t, good)[:20]), true, false},
		"too slow":           {frame[:len(frame)-1], false, true},
		"nothing for a time": {frame[:2], false, true},
	} {
		bad, late := quicCount(s, "0x2"), limitedTo(s, "read_time")
		c := clients.DialQUIC(t, s.addr)
		sendStream(t, c.Conn, tc.b, tc.end)
		if got := closeCode(t, c.Conn); got != int(DoQCodeProtocolError) {
			t.Errorf("%s: got code %d", name, got)
		}
		if quicCount(s, "0x2") != bad+1 {
			t.Errorf("%s: counted %d", name, quicCount(s, "0x2")-bad)
		}
		if counted := limitedTo(s, "read_time") - late; (counted == 1) != tc.late {
			t.Errorf("%s: read_time counted %d", name, counted)
		}
	}
}

func TestDoQStreams(t *testing.T) {
	s := serving(t, blockFor(t, "quic", new(laneHandler)))
	c := clients.DialQUIC(t, s.addr)
	good, internal := quicCount(s, "0x0"), quicCount(s, "0x1")

	// The end of the stream is not waited for.
	m := query("www.")
	m.Id = 0
	stream := sendStream(t, c.Conn, AddPrefix(packed(t, m)), false)
	if b, err := clients.ReadFrame(stream); err != nil || len(b) == 0 {
		t.Errorf("got %x, %v", b, err)
	}
	// A query that gets no answer has its stream reset.
	m = query("drop.")
	m.Id = 0
	_, err := clients.ReadFrame(sendStream(t, c.Conn, AddPrefix(packed(t, m)), true))
	var reset *quic.StreamError
	if !errors.As(err, &reset) || reset.ErrorCode != doqStreamCancelled || !reset.Remote {
		t.Errorf("got %v", err)
	}
	// A client that changes its mind does no harm.
	stream = sendStream(t, c.Conn, []byte{0}, false)
	stream.CancelWrite(doqStreamCancelled)
	if r, err := c.Ask(query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	eventually(t, "three are counted, after their replies", func() bool { return quicCount(s, "0x0")-good == 3 })
	// And one that goes, neither.
	c.Close()
	time.Sleep(50 * time.Millisecond)
	if n := quicCount(s, "0x1") - internal; n != 0 {
		t.Errorf("counted %d internal errors", n)
	}
}

// TestDoQTransfer has a reply of several messages.
func TestDoQTransfer(t *testing.T) {
	h := handler{"transfer", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		for range 3 {
			if err := w.WriteMsg(new(dns.Msg).SetReply(r)); err != nil {
				return dns.RcodeServerFailure, err
			}
		}
		return 0, nil
	}}
	s := serving(t, blockFor(t, "quic", h))
	c := clients.DialQUIC(t, s.addr)
	for qtype, want := range map[uint16]int{dns.TypeAXFR: 3, dns.TypeIXFR: 3, dns.TypeA: 1} {
		m := new(dns.Msg).SetQuestion("example.org.", qtype)
		m.Id = 0
		stream := sendStream(t, c.Conn, AddPrefix(packed(t, m)), true)
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

func TestDoQWorkers(t *testing.T) {
	cfg := blockFor(t, "quic", echo)
	one := 1
	cfg.MaxQUICWorkerPoolSize = &one
	s := serving(t, cfg)
	var wg sync.WaitGroup
	begin := time.Now()
	for range 3 {
		wg.Go(func() {
			if _, err := clients.DialQUIC(t, s.addr).Ask(query("slow.")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took < 880*time.Millisecond {
		t.Errorf("three queries of 300 ms took %v", took)
	}
}

// TestDoQ0RTT asks in the first packet of a connection that was known before.
func TestDoQ0RTT(t *testing.T) {
	s := serving(t, blockFor(t, "quic", new(laneHandler)))
	conf := clients.Trusting.Clone()
	conf.NextProtos, conf.ClientSessionCache = []string{"doq"}, tls.NewLRUClientSessionCache(1)
	for _, early := range []bool{false, true} {
		conn, err := quic.DialAddrEarly(t.Context(), s.addr, conf, &quic.Config{TokenStore: quic.NewLRUTokenStore(1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		c := &clients.QUICClient{Conn: conn}
		if r, err := c.Ask(query("www.")); err != nil || len(r.Answer) != 1 {
			t.Errorf("got %v, %v", r, err)
		}
		if got := conn.ConnectionState().Used0RTT; got != early {
			t.Errorf("0-RTT: %t, want %t", got, early)
		}
		time.Sleep(50 * time.Millisecond) // for the session ticket
		c.Close()
	}
}

func TestQUICWithoutTLS(t *testing.T) {
	cfg := blockFor(t, "quic", new(laneHandler))
	cfg.TLSConfig = nil
	s, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListenPacket(); err == nil || err.Error() != "quic: tls.Config not set" {
		t.Errorf("got %v", err)
	}
	if err := s.ServePacket(nil); err == nil {
		t.Error("serves")
	}
	if err := s.ServeQUIC(); err == nil {
		t.Error("serves without a listener")
	}
	if _, err := NewServerHTTPS3("https3://127.0.0.1:0", []*Config{cfg}); err == nil || err.Error() != "DoH3 requires TLS, no TLS config found" {
		t.Errorf("got %v", err)
	}
}

func TestDoQWriterWithoutStream(t *testing.T) {
	w := new(DoQWriter)
	for what, err := range map[string]error{"WriteMsg": w.WriteMsg(query("www.")), "Close": w.Close()} {
		if err == nil || err.Error() != "stream is nil" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := w.Write(nil); err == nil || err.Error() != "stream is nil" {
		t.Errorf("got %v", err)
	}
	if w.Msg == nil || w.TsigStatus() != nil || w.Network() != "" {
		t.Errorf("got %v", w)
	}
}

func TestHasKeepalive(t *testing.T) {
	m := query("www.").SetEdns0(1232, false)
	if hasKeepalive(packed(t, m)) || hasKeepalive(packed(t, query("www."))) || hasKeepalive(nil) {
		t.Error("found what is not there")
	}
	for _, o := range []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID}, &dns.EDNS0_PADDING{Padding: make([]byte, 3)}, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}} {
		m.IsEdns0().Option = append(m.IsEdns0().Option, o)
	}
	if !hasKeepalive(packed(t, m)) {
		t.Error("not found")
	}
}

// FuzzReadDoQ reads anything from a stream.
func FuzzReadDoQ(f *testing.F) {
	s, err := NewServerQUIC("quic://127.0.0.1:0", []*Config{block1(".", echo)})
	if err != nil {
		f.Fatal(err)
	}
	m := query("www.").SetEdns0(1232, false)
	m.Id = 0
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}}
	f.Add(AddPrefix(packed(f, m)))
	f.Fuzz(func(t *testing.T, b []byte) {
		packet, err := s.readDoQ(bytes.NewReader(b))
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
