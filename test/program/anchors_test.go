package program

import (
	"strings"
	"testing"
	"time"
)

// An operator lists the anchors of a validator, and has a name not validated for a while.
func TestControlAnchors(t *testing.T) {
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nvalidator {\nnta_file ntas\n}\nwhoami\n}\n")
	if out := s.must("anchors"); !strings.Contains(out, "20326") || !strings.Contains(out, "38696") || !strings.Contains(out, "configured") {
		t.Errorf("anchors are\n%s", out)
	}
	said, ok := strings.CutPrefix(s.must("nta", "add", "Broken.example", "2h"), "not validated until ")
	if end, err := time.Parse("2006-01-02T15:04:05Z07:00\n", said); !ok || err != nil || end.Nanosecond() != 0 || time.Until(end) < time.Hour {
		t.Errorf("said %q, %v", said, err)
	}
	if out := s.must("anchors"); !strings.Contains(out, "broken.example.") || !strings.Contains(out, "negative") {
		t.Errorf("anchors are\n%s", out)
	}
	if out := s.must("nta", "del", "broken.example."); out != "validated again\n" {
		t.Errorf("said %q", out)
	}
	if out := s.must("anchors"); strings.Contains(out, "broken") {
		t.Errorf("anchors are\n%s", out)
	}
	for _, wrong := range [][]string{{"nta", "add"}, {"nta", "add", "x", "200h"}, {"nta", "add", "x", "long"}, {"nta", "del", "no.example"}, {"nta", "add", "a..b"}, {"anchors", "x"}} {
		if _, errs, status := s.ctl(wrong...); status == 0 || errs == "" {
			t.Errorf("ctl %v: status %d, %q", wrong, status, errs)
		}
	}
}
