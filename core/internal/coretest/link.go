package coretest

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
)

// FarAway is how long a datagram takes on a Link to somebody to whom a server that stops does not listen for so long,
// unless it knows that more is to come.
const FarAway = 3 * service.DrainTime

// Link is a way to a server of UDP that takes its time. It has one client.
type Link struct {
	addr  string
	delay time.Duration // each way
	keep  int           // the first datagrams, as many as this, are let through at once
	free  chan struct{} // closed when all are let through

	mu   sync.Mutex
	sent int // datagrams of the client that have reached the server
}

// NewLink is a Link to the server at addr. It lets n datagrams of the client through, all if n is 0; the others wait
// for Release.
func NewLink(t testing.TB, addr string, delay time.Duration, n int) *Link {
	t.Helper()
	near := ListenUDP(t)
	far, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	l := &Link{addr: near.LocalAddr().String(), delay: delay, keep: n, free: make(chan struct{})}
	go l.carry(near, far)
	return l
}

// carry carries datagrams both ways until the sockets are closed.
func (l *Link) carry(near net.PacketConn, far net.Conn) {
	b := make([]byte, 65536)
	for n := 1; ; n++ {
		size, client, err := near.ReadFrom(b)
		if err != nil {
			return
		}
		if n == 1 {
			go l.carryBack(near, far, client)
		}
		datagram := slices.Clone(b[:size])
		time.AfterFunc(l.delay, func() {
			if l.keep > 0 && n > l.keep {
				<-l.free
			}
			far.Write(datagram)
			l.mu.Lock()
			l.sent++
			l.mu.Unlock()
		})
	}
}

func (l *Link) carryBack(near net.PacketConn, far net.Conn, client net.Addr) {
	b := make([]byte, 65536)
	for {
		size, err := far.Read(b)
		if err != nil {
			return
		}
		datagram := slices.Clone(b[:size])
		time.AfterFunc(l.delay, func() { near.WriteTo(datagram, client) })
	}
}

// Addr is where the client finds the server.
func (l *Link) Addr() string { return l.addr }

// Reached waits until a datagram of the client has reached the server.
func (l *Link) Reached(t testing.TB) {
	t.Helper()
	eventually.Holds(t, "the client's first words reach the server", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.sent > 0
	})
}

// Release lets all datagrams through.
func (l *Link) Release() { close(l.free) }
