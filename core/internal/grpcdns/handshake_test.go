package grpcdns

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/test/clients"
)

// begin begins HTTP/2 on c, and makes a call.
func begin(t *testing.T, c net.Conn) *coretest.H2 {
	p := coretest.NewH2(t, c)
	io.WriteString(c, http2.ClientPreface)
	p.Framer.WriteSettings()
	p.Framer.WriteSettingsAck()
	call(t, p, 1, "www.")
	return p
}

// answer reads until a call is answered, of a client that may have been told to go.
func answer(p *coretest.H2) {
	for f := p.Until(); ; f = p.Until() {
		if m, ok := f.(*http2.MetaHeadersFrame); ok && m.StreamEnded() {
			return
		}
	}
}

// A client that is in the middle of its TLS handshake when the server stops is served, and so is one that waits for the
// server's settings before it calls; one that has said nothing is not waited for. Others are told meanwhile that they are to go.
func TestStopWithinHandshake(t *testing.T) {
	s := serve(t, serviceFor(t, coretest.Echo, tlsConfig(t), nil))
	silent := coretest.Dial(t, s.addr)
	other := begin(t, coretest.DialH2(t, s.addr).Conn)
	replied(other, 1)
	slow := coretest.DialPausing(t, s.addr)
	offer := clients.Trusting.Clone()
	offer.NextProtos = []string{"h2"}
	c := tls.Client(slow, offer)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		answer(begin(t, c))
	}()
	<-slow.Paused
	far := coretest.NewH2(t, coretest.DialH2(t, s.addr).Conn)
	io.WriteString(far.Conn, http2.ClientPreface)
	far.Framer.WriteSettings()
	if _, settings := far.Read().(*http2.SettingsFrame); !settings {
		t.Error("no settings")
	}
	ended := coretest.Stopping(t, s.end)
	if _, err := silent.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent client is not sent away: %v", err)
	}
	told := false
	for !told {
		_, told = other.Until().(*http2.GoAwayFrame)
	}
	time.Sleep(4 * service.DrainTime) // is longer than others are waited for
	call(t, far, 1, "www.")
	answer(far)
	close(slow.GoOn)
	<-answered
	ended()
}

// A client that is far away may call until it learns that it is to go. That is answered.
func TestStopFarFromItsClient(t *testing.T) {
	usual := learnTime
	learnTime = time.Hour
	t.Cleanup(func() { learnTime = usual })
	s := serve(t, serviceFor(t, coretest.Echo, nil, nil))
	p := begin(t, coretest.Dial(t, s.addr))
	replied(p, 1)
	ended := coretest.Stopping(t, s.end)
	call(t, p, 3, "last.")
	answer(p)
	p.Conn.Close()
	ended()
}
