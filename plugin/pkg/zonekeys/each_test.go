package zonekeys

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
)

// TestEach: each number comes once, the first error ends the work, and so does the context.
func TestEach(t *testing.T) {
	for _, workers := range []int{1, 3, 100} {
		var seen [50]atomic.Int32
		if err := Each(t.Context(), len(seen), workers, func(i int) error { seen[i].Add(1); return nil }); err != nil {
			t.Error(err)
		}
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Errorf("%d workers: %d came %d times", workers, i, n)
			}
		}
		bad := errors.New("bad")
		var done atomic.Int32
		err := Each(t.Context(), 10_000, workers, func(i int) error {
			if done.Add(1); i == 7 {
				return bad
			}
			return nil
		})
		if !errors.Is(err, bad) || done.Load() == 10_000 {
			t.Errorf("%d workers: %v after %d", workers, err, done.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Each(ctx, 5, workers, func(int) error { t.Error("called"); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
	if err := Each(t.Context(), 0, 4, func(int) error { return errors.New("called") }); err != nil {
		t.Error(err)
	}
}

// Who serves sockets has a turn after each piece of work.
func TestOthersServeBetweenPieces(t *testing.T) {
	e := echotest.Start(t)
	n := e.During(func() {
		_ = Each(t.Context(), 400, 2, func(int) error {
			for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
			}
			return nil
		})
	})
	if n < 20 {
		t.Errorf("%d datagrams and back between 400 pieces of work", n)
	}
}
