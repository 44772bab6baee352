package conn

import (
	"bufio"
	"crypto/tls"
	golog "log"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/test/clients"
)

// A client in the middle of its handshake is served when the server stops; one that has said nothing is not waited
// for.
func TestStopWithinHandshake(t *testing.T) {
	config := coretest.Certificate(t, "lines")
	l, addr, end := serveLines(t, lineService(t), newLineServer(), config, nil)
	silent := coretest.Dial(t, addr)
	slow := coretest.DialPausing(t, addr)
	offer := clients.Trusting.Clone()
	offer.NextProtos = []string{"lines"}
	c := tls.Client(slow, offer)
	answer := make(chan string, 1)
	go func() { answer <- told(t, c, "who") }()
	<-slow.Paused
	eventually.Holds(t, "the silent client is served, too", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns) == 2
	})
	ended := coretest.Stopping(t, end)
	if !closed(silent) {
		t.Error("the silent client is not sent away")
	}
	time.Sleep(2 * service.DrainTime) // is longer than others are waited for
	close(slow.GoOn)
	if got := <-answer; got != "127.0.0.1" {
		t.Errorf("the slow client got %s", got)
	}
	ended()
}

// One that was accepted last, and says nothing, does not hold up the end, also where a proxy may tell for whom it is. It
// has kept to its time.
func TestSilentAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		proxied bool
		config  *tls.Config
	}{"PROXY": {proxied: true}, "TLS": {config: coretest.Certificate(t)}, "both": {true, coretest.Certificate(t)}} {
		t.Run(name, func(t *testing.T) {
			s := lineService(t)
			s.Handshake = time.Hour
			l := NewListener(s, ClientAuthOf(tc.config))
			l.stopping.Store(true)
			ours, theirs := net.Pipe()
			defer theirs.Close()
			if tc.proxied {
				ours = &proxyConn{Conn: ours, policy: proxyproto.USE, r: bufio.NewReaderSize(ours, proxyBuffer)}
			}
			c := newConn(l, ours, tc.config)
			ended := make(chan bool)
			go func() { ended <- c.handshake() }()
			select {
			case good := <-ended:
				if n := coretest.Limited(s, "handshake_time"); good || n != 0 {
					t.Errorf("good %v, counted %d", good, n)
				}
			case <-time.After(clients.AskTime):
				t.Error("it is waited for")
			}
		})
	}
}

// Why a client was refused is in the log of those who debug: the client does not always get to see it.
func TestFailedHandshakeIsLogged(t *testing.T) {
	config := coretest.Certificate(t, "lines")
	config.ClientAuth = tls.RequireAnyClientCert
	var logged strings.Builder
	golog.SetOutput(&logged)
	log.D.Set()
	defer func() {
		golog.SetOutput(os.Stderr)
		log.D.Clear()
	}()
	_, addr, end := serveLines(t, lineService(t), newLineServer(), config, nil)
	nc := coretest.Dial(t, addr)
	offer := clients.Trusting.Clone()
	offer.NextProtos = []string{"lines"}
	c := tls.Client(nc, offer)
	c.Read(make([]byte, 1)) // with TLS 1.3 the client learns that it is refused behind its handshake
	if err := end(); err != nil {
		t.Error(err)
	}
	if want := "TLS handshake error from " + nc.LocalAddr().String() + ": tls: client didn't provide a certificate"; !strings.Contains(logged.String(), want) {
		t.Errorf("the log has %q, not %q", logged.String(), want)
	}
}

// deadlines is a connection that notes until when is read.
type deadlines struct {
	net.Conn
	until time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.until = t
	return nil
}

// How long a handshake may take when the server stops depends on whether the client has said something.
func TestHandshakeDeadlines(t *testing.T) {
	l := NewListener(lineService(t), ClientAuth{})
	for _, tc := range []struct {
		name     string
		shaking  int32
		stopping bool
		do       func(*Conn)
		want     time.Duration // 0: no deadline is set
	}{
		{"silent at the stop", awaited, true, (*Conn).DrainRead, service.DrainTime},
		{"begun at the stop", begun, true, (*Conn).DrainRead, handshakeTime},
		{"over at the stop", shaken, true, (*Conn).DrainRead, service.DrainTime},
		{"the first word after it", awaited, true, (*Conn).heard, handshakeTime},
		{"more of it", begun, true, (*Conn).heard, 0},
		{"the first word of any other", awaited, false, (*Conn).heard, 0},
	} {
		ours, theirs := net.Pipe()
		d := &deadlines{Conn: ours}
		c := newConn(l, d, new(tls.Config))
		l.stopping.Store(tc.stopping)
		c.shaking.Store(tc.shaking)
		before := time.Now()
		tc.do(c)
		if tc.want == 0 {
			if !d.until.IsZero() {
				t.Errorf("%s: until %v", tc.name, d.until)
			}
		} else if d.until.Before(before.Add(tc.want)) || d.until.After(time.Now().Add(tc.want)) {
			t.Errorf("%s: for %v, not %v", tc.name, d.until.Sub(before), tc.want)
		}
		ours.Close()
		theirs.Close()
	}
}
