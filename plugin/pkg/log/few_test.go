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
