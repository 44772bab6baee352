package eventloop_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
)

// Who serves a socket has a turn with each Yield of one who computes. With runtime.Gosched it is one every ten
// milliseconds.
func TestYield(t *testing.T) {
	e := echotest.Start(t)
	compute := func(n int, yield func()) func() {
		return func() {
			for range n {
				for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
				}
				yield()
			}
		}
	}
	if n := e.During(compute(400, eventloop.Yield)); n < 40 {
		t.Errorf("%d datagrams and back in 400 turns", n)
	}
	if n := e.During(compute(400, runtime.Gosched)); n > 100 {
		t.Errorf("%d datagrams and back with runtime.Gosched: there is no need for Yield any more", n)
	}
	var turns eventloop.Turns
	if n := e.During(compute(1<<14, turns.Done)); n < 4 || n > 100 {
		t.Errorf("%d datagrams and back in %d pieces of work", n, 1<<14)
	}
}

func BenchmarkYield(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		eventloop.Yield()
	}
}
