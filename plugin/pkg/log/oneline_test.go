package log

import (
	"errors"
	"testing"
)

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"read: café":                 "read: café",
		"one\r\n[ERROR] two":         "one ; [ERROR] two",
		"red \x1b[31m\x9b31m\u009b1": "red  [31m\ufffd31m 1",
		"a\tb\x00\x7f":               "a\tb  ",
	} {
		if got := OneLine(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := OneLine(errors.Join(errors.New("a"), errors.New("b"))); got != "a; b" {
		t.Errorf("got %q", got)
	}
}
