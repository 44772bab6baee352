package eventloop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

func placed(p eventloop.Place) context.Context {
	return context.WithValue(context.Background(), eventloop.PlaceKey{}, p)
}

// Of those that have waited for long the oldest with the place that is wanted gives way, once.
func TestOldestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p eventloop.Patience
		elsewhere, done0 := p.Wait(context.Background())
		parked, done1 := p.Wait(placed(eventloop.Parked))
		old, done2 := p.Wait(placed(eventloop.AtWork))
		time.Sleep(150 * time.Millisecond)
		young, done3 := p.Wait(placed(eventloop.AtWork))
		if eventloop.MakeRoom(eventloop.AtWork) {
			t.Error("somebody gave way after 150 ms")
		}
		time.Sleep(100 * time.Millisecond)
		if !eventloop.MakeRoom(eventloop.AtWork) || context.Cause(old) != eventloop.ErrGaveWay {
			t.Errorf("after 250 ms: %v", context.Cause(old))
		}
		if eventloop.MakeRoom(eventloop.AtWork) || young.Err() != nil || parked.Err() != nil || elsewhere.Err() != nil {
			t.Error("another one gave way")
		}
		for _, done := range []func(error) error{done0, done1, done2, done3} {
			done(context.Canceled)
		}
		time.Sleep(time.Second)
		if eventloop.MakeRoom(eventloop.AtWork | eventloop.Parked) {
			t.Error("one that waits no more gave way")
		}
	})
}

// Who is slow as a rule is waited for longer, and of whoever has become so some answers are waited for.
func TestPatienceWithTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p eventloop.Patience
		stayed := 0
		for range 64 {
			in, done := p.Wait(placed(eventloop.AtWork))
			time.Sleep(400 * time.Millisecond)
			eventloop.MakeRoom(eventloop.AtWork)
			want := eventloop.ErrGaveWay
			if in.Err() == nil {
				stayed, want = stayed+1, context.Canceled
			}
			if err := done(context.Canceled); err != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if stayed != 1 {
			t.Errorf("%d of 64 stayed", stayed)
		}
		for range 64 {
			_, done := p.Wait(placed(eventloop.AtWork))
			time.Sleep(time.Second)
			done(nil)
		}
		in, done := p.Wait(placed(eventloop.AtWork))
		defer done(context.Canceled)
		time.Sleep(time.Second)
		if eventloop.MakeRoom(eventloop.AtWork); in.Err() != nil {
			t.Error("one gave way within the usual time")
		}
	})
}
