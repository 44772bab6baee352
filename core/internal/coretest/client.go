package coretest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Query asks for the A records of name.
func Query(name string) *dns.Msg { return new(dns.Msg).SetQuestion(name, dns.TypeA) }

// Packed is m as octets.
func Packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Frame is the query for name with its length before it.
func Frame(t testing.TB, name string) []byte {
	t.Helper()
	return clients.Frame(Packed(t, Query(name)))
}

// Describe is the rcode of r and the address of its first record: "NOERROR 192.0.2.1", or "nothing" if r is nil.
func Describe(r *dns.Msg) string {
	if r == nil {
		return "nothing"
	}
	s := dns.RcodeToString[r.Rcode]
	if len(r.Answer) > 0 {
		s += " " + r.Answer[0].(*dns.A).A.String()
	}
	return s
}

// Label is a label of no other Service, so that what is counted for it begins at 0 in each run of a test.
func Label(t testing.TB) string { return fmt.Sprintf("dns://%s:%d", t.Name(), labels.Add(1)) }

var labels atomic.Int32

// Limited is how often a limit of s had an effect.
func Limited(s *service.Service, reason string) int {
	return int(testutil.ToFloat64(service.Limited(s.Label, reason)))
}

// SeatOf is a Seat at which s sits.
func SeatOf(s *service.Service) *service.Seat {
	p := new(service.Seat)
	p.Sit(s)
	return p
}

var certificates struct {
	sync.Mutex
	config *tls.Config
}

// Certificate is a TLS configuration for servers on loopback, with these protocols; clients do not check it.
func Certificate(t testing.TB, protocols ...string) *tls.Config {
	t.Helper()
	certificates.Lock()
	defer certificates.Unlock()
	if certificates.config == nil {
		dir, err := test.WritePEMFiles(t.(*testing.T))
		if err != nil {
			t.Fatal(err)
		}
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		certificates.config = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	c := certificates.config.Clone()
	c.NextProtos = protocols
	return c
}

// ListenTCP is a listener on loopback.
func ListenTCP(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Again is another listener on the socket of l, as the next server has it in a reload.
func Again(t testing.TB, l net.Listener) net.Listener {
	t.Helper()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// ListenUDP is a socket on loopback.
func ListenUDP(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Serving has serve run until the test ends, or end is called: then t is stopped, and serve waited for. end returns
// what Stop did.
func Serving(t testing.TB, transport service.Transport, serve func() error) (end func() error) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- serve() }()
	end = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), clients.AskTime)
		defer cancel()
		err := transport.Stop(ctx)
		if serr := <-served; serr != nil {
			t.Errorf("serving ended with %v", serr)
		}
		return err
	})
	t.Cleanup(func() { end() })
	return end
}

// Stopping begins to end what is to wait for queries that are at work. What it returns waits for the end.
func Stopping(t testing.TB, end func() error) (ended func()) {
	t.Helper()
	stopped := make(chan error, 1)
	go func() { stopped <- end() }()
	select {
	case err := <-stopped:
		t.Fatalf("it ended before its queries: %v", err)
	case <-time.After(2 * service.DrainTime):
	}
	return func() {
		t.Helper()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// Dial opens a connection that gives up after a while.
func Dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, clients.AskTime)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(clients.AskTime))
	t.Cleanup(func() { c.Close() })
	return c
}

// ClosedAfter waits until the server closes c. It reports whether that is no earlier than so long after begin.
func ClosedAfter(t testing.TB, c net.Conn, begin time.Time, least time.Duration) bool {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server does not close the connection")
	}
	return Since(begin, least)
}

// Since reports whether it is so long after begin, as coarse as timers are.
func Since(begin time.Time, least time.Duration) bool {
	return time.Since(begin) > least-5*time.Millisecond
}
