package eventloop

import (
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Who serves a socket is served, though each processor has a goroutine that computes without end and only yields. With
// runtime.Gosched it would be so every ten milliseconds.
func TestYield(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere Yield is runtime.Gosched")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with more, one may wait for the kernel already when it begins
	yields, gosched := echo(t, Yield), echo(t, runtime.Gosched)
	if yields > gosched/2 {
		t.Errorf("an echo takes %v, with runtime.Gosched %v", yields, gosched)
	}
}

// echo is what a datagram takes to an echo and back by median, while another goroutine computes.
func echo(t *testing.T, yield func()) time.Duration {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
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
	stop := make(chan struct{})
	var computing sync.WaitGroup
	defer computing.Wait()
	defer close(stop)
	computing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
				}
				yield()
			}
		}
	})
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var took []time.Duration
	b := make([]byte, 64)
	for range 41 {
		began := time.Now()
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		_ = client.SetReadDeadline(began.Add(5 * time.Second))
		if _, err := client.Read(b); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

func BenchmarkYield(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Yield()
	}
}
