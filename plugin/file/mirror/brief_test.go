package mirror

import (
	"errors"
	"strings"
	"testing"
)

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"one line":                             "one line",
		"two\r\n  lines\n\n":                   "two; lines",
		strings.Repeat("x", maxText):           strings.Repeat("x", maxText),
		strings.Repeat("x", maxText) + "y":     strings.Repeat("x", maxText) + "...",
		"x" + strings.Repeat("é", maxText):     "x" + strings.Repeat("é", maxText/2-1) + "...",
		strings.Repeat("by the proxy\n", 1000): strings.Repeat("by the proxy; ", 36)[:maxText] + "...",
	} {
		cause := errors.New(text)
		if err := Brief(cause); err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("got  %q\nwant %q", err, want)
		}
	}
}
