package log

import "testing"

func TestFew(t *testing.T) {
	var f Few
	for second := range int64(3) {
		told := 0
		for range 100 {
			if f.mayAt(second) {
				told++
			}
		}
		if told != fewLines {
			t.Errorf("second %d: %d lines", second, told)
		}
	}
}

func TestSeldom(t *testing.T) {
	var s Seldom
	told := 0
	for second := range int64(180) {
		for range 10 {
			if s.mayAt(1e9 + second) {
				told++
			}
		}
	}
	if told != 3 {
		t.Errorf("%d lines in three minutes", told)
	}
}

// A clock that is set back, as when a machine learns what time it is, does not end the lines.
func TestSeldomClockSetBack(t *testing.T) {
	var s Seldom
	if !s.mayAt(2e9) || !s.mayAt(1e9) || s.mayAt(1e9+59) || !s.mayAt(1e9+60) {
		t.Error("the lines have ended, or there are more")
	}
}
