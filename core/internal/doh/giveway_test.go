package doh

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/test/clients"
)

// onePlace serves one connection of HTTP at a time.
func onePlace(t *testing.T) *served {
	of := serviceFor(t, coretest.Echo)
	of.Connections = 1
	return serve(t, of, tlsConfig(t))
}

// displace has another client take the place of the connection that there is.
func displace(t *testing.T, s *served) {
	t.Helper()
	c := clients.DialHTTP(t, s.addr, http.MethodPost, 1)
	if _, err := c.Ask(coretest.Query("other.")); err != nil {
		t.Errorf("the other client: %v", err)
	}
	c.Close()
}

// A connection of HTTP/2 that gives way to another tells its client, and what is on its way is answered.
func TestH2GivesWay(t *testing.T) {
	s := onePlace(t)
	for range 20 { // the client may be too slow
		p := coretest.ConnectH2(t, s.addr)
		post(p, 1, "www.")
		if id, got := replied(p); id != 1 || got != "NOERROR 192.0.2.1" {
			t.Fatalf("got %d %s", id, got)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			displace(t, s)
		}()
		t.Cleanup(func() { <-done })
		if g, ok := p.Until().(*http2.GoAwayFrame); !ok || g.LastStreamID != 1<<31-1 || g.ErrCode != http2.ErrCodeNo {
			t.Fatalf("got %v", g)
		}
		post(p, 3, "www.") // was on its way
		switch f := p.Until().(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamID != 3 || f.PseudoValue("status") != "200" {
				t.Errorf("got %v", f)
			}
			if got := p.Ended(); got != http2.ErrCodeNo.String() {
				t.Errorf("the end: %s", got)
			}
			return
		case *http2.GoAwayFrame:
			if f.LastStreamID != 1 {
				t.Errorf("got %v", f)
			}
		}
	}
	t.Error("what is on its way is not answered")
}

// The client of a connection of HTTP/1.1 that gives way can be told with a response only: the next one, if it asks in
// time.
func TestHTTP1GivesWay(t *testing.T) {
	s := onePlace(t)
	c := clients.DialHTTP(t, s.addr, "", 1)
	ask := func() (last bool) {
		t.Helper()
		resp, err := c.Client.Get(c.URL + inURL(coretest.Packed(t, coretest.Query("www."))))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("status %d, %v", resp.StatusCode, err)
		}
		return resp.Close
	}
	if ask() {
		t.Fatal("the connection ends at once")
	}
	displace(t, s)
	if !ask() || c.Dials() != 1 {
		t.Errorf("the client is not told on its connection; it has %d", c.Dials())
	}
	if ask() || c.Dials() != 2 {
		t.Errorf("the next connection is told; the client has had %d", c.Dials())
	}
}

// Who asks nothing more has the connection closed.
func TestHTTP1GivesWaySilent(t *testing.T) {
	s := onePlace(t)
	c := tls.Client(coretest.Dial(t, s.addr), clients.Trusting)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	displace(t, s)
	if !coretest.ClosedAfter(t, c, began, lastRequest) {
		t.Error("it was closed at once")
	}
}

// A connection of HTTP/3 that gives way to another tells its client, which then knows that what was on its way may be
// asked again.
func TestHTTP3GivesWay(t *testing.T) {
	of := serviceFor(t, coretest.Echo)
	of.Connections = 1
	s, _ := serve3(t, of)
	l := coretest.NewLink(t, s.addr, coretest.FarAway, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := quic.DialAddr(ctx, l.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := new(http3.Transport).NewClientConn(client)
	ask := func() error {
		target := "https://" + l.Addr() + inURL(coretest.Packed(t, coretest.Query("www.")))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	displace3(t, s)
	var why *http3.Error
	if err := ask(); errors.As(err, &why) && why.Remote && why.ErrorCode != http3.ErrCodeRequestRejected { // it may know in time
		t.Errorf("what was on its way got %v", err)
	}
}

// A client that stays though it was told to go is cut off.
func TestHTTP3GivesWayInTheEnd(t *testing.T) {
	of := serviceFor(t, coretest.Echo)
	of.Connections, of.Idle = 1, time.Hour
	s, _ := serve3(t, of)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stays, err := quic.DialAddr(ctx, s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{http3.NextProtoH3}},
		&quic.Config{KeepAlivePeriod: time.Second, MaxIdleTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	displace3(t, s)
	select {
	case <-stays.Context().Done():
	case <-ctx.Done():
		t.Error("it is still there")
	}
}

// displace3 is displace for HTTP/3.
func displace3(t *testing.T, s *served) {
	t.Helper()
	c := clients.DialHTTP3(t, s.addr, http.MethodGet)
	if _, err := c.Ask(coretest.Query("other.")); err != nil {
		t.Errorf("the other client: %v", err)
	}
	c.Close()
}
