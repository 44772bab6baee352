package freq

import (
	"testing"
	"time"
)

func TestFreq(t *testing.T) {
	now := time.Now()
	f := New(now)
	for i, tc := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Second, 2}, {61 * time.Second, 3}, {62 * time.Second, 4}, {123 * time.Second, 1}, {123 * time.Second, 2}} {
		if i == 2 { // exactly d later is not too late
			tc.after = 61 * time.Second
		}
		if got := f.Update(time.Minute, now.Add(tc.after)); got != tc.want {
			t.Errorf("hit %d: got %d, want %d", i, got, tc.want)
		}
	}
	f.Reset(now, 7)
	if f.Hits() != 7 {
		t.Errorf("got %d after Reset", f.Hits())
	}
	if got := f.Update(time.Minute, now); got != 8 {
		t.Errorf("got %d after Reset and a hit", got)
	}
}
