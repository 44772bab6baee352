package eventloop_test

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// What has waited longest of all gives way, whoever knows of it; what has come to its own end meanwhile does not.
func TestMakeRoom(t *testing.T) {
	if eventloop.MakeRoom(eventloop.AtWork) {
		t.Error("nobody ended anything")
	}
	began := time.Now()
	var of [2][]int // since when
	gone := map[int]bool{}
	ended, over := 0, false
	defer func() { over = true }() // what is told once stays for ever
	for i := range of {
		eventloop.OnCrowd(func(wanted eventloop.Place) (time.Time, func() bool) {
			if over {
				return time.Time{}, nil
			}
			if wanted != eventloop.AtWork {
				t.Errorf("%v is wanted", wanted)
			}
			if len(of[i]) == 0 {
				return time.Time{}, nil
			}
			first := of[i][0]
			return began.Add(time.Duration(first)), func() bool {
				of[i] = of[i][1:]
				if gone[first] {
					return false
				}
				ended = first
				return true
			}
		})
	}
	of[0], of[1] = []int{1, 4, 5}, []int{2, 3, 6}
	gone[4], gone[5] = true, true
	for _, want := range []int{1, 2, 3, 0, 6, 0} {
		ended = 0
		if made := eventloop.MakeRoom(eventloop.AtWork); ended != want || made != (want != 0) {
			t.Errorf("%d ended, made %t, want %d", ended, made, want)
		}
	}
}
