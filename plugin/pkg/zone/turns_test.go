package zone

import (
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// While a large zone is built, on the only processor that there is, those who serve sockets have their turns. Without
// these the scheduler would ask for readable sockets every ten milliseconds, and it would be two.
func TestOthersServeWhileBuilding(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("eventloop.Yield asks for sockets on Linux only")
	}
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
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
	var trips atomic.Int64
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	go func() {
		for b := make([]byte, 64); ; trips.Add(1) {
			if _, err := client.Write([]byte("x")); err != nil {
				return
			}
			if _, err := client.Read(b); err != nil {
				return
			}
		}
	}()
	origin := wire.MustName("example.org")
	phase := func(what string, least int64, work func()) {
		began, before := time.Now(), trips.Load()
		work()
		if n := trips.Load() - before; n < least {
			t.Errorf("%s: %d datagrams and back in %v, want %d", what, n, time.Since(began), least)
		}
	}
	b := NewBuilder(origin, t.Logf)
	soa := append(append(append([]byte{}, origin...), origin...), make([]byte, 20)...)
	if err := b.Add(origin, wire.TypeSOA, 300, soa); err != nil {
		t.Fatal(err)
	}
	phase("add", 300, func() {
		for i := range 200000 {
			if err := b.Add(wire.MustName(fmt.Sprintf("h%d.example.org", i)), wire.TypeA, 300, []byte{192, 0, 2, byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
	})
	phase("build", 450, func() {
		if _, err := b.Build(); err != nil {
			t.Fatal(err)
		}
	})
}
