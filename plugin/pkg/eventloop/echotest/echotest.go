// Package echotest shows whether those who serve sockets have their turns while something else computes.
//
//	Start: a datagram goes to a socket and back, over and over ──▶ During(work): how often it did
//
// Start at Start.
package echotest

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
)

// Echo is a datagram that goes to a socket and back, over and over, on the only processor that a test has.
type Echo struct{ trips atomic.Int64 }

// Start begins, until the test ends. It skips a test where sockets are not asked for by a Yield, but by the scheduler
// alone: every ten milliseconds while something computes.
func Start(t testing.TB) *Echo {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("eventloop.Yield asks for sockets on Linux only")
	}
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	processors := runtime.GOMAXPROCS(1) // with more, one may wait for the kernel already when the computing begins
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		client.Close()
		server.Close()
	})
	e := &Echo{}
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := server.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(b[:n], from)
		}
	}()
	go func() {
		for b := make([]byte, 64); ; e.trips.Add(1) {
			if _, err := client.Write([]byte("x")); err != nil {
				return
			}
			if _, err := client.Read(b); err != nil {
				return
			}
		}
	}()
	return e
}

// A trip takes some turns: one for the server to be found, one for the client. So a test asks for far fewer trips than
// there are turns, and for more than the one in twenty milliseconds that come without them.

// During is how often the datagram goes to and fro while work computes.
func (e *Echo) During(work func()) (trips int) {
	before := e.trips.Load()
	work()
	return int(e.trips.Load() - before)
}
