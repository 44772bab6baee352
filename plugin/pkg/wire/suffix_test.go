package wire

import "testing"

func TestSuffixes(t *testing.T) {
	var s Suffixes[string]
	if _, ok := s.Longest(MustName("example.org")); ok {
		t.Error("found in nothing")
	}
	for _, n := range []string{"org", "sub.example.org", "example.org"} {
		s.Set(MustName(n), n)
	}
	for name, want := range map[string]string{"example.org": "example.org", "www.example.org": "example.org", "a.b.sub.example.org": "sub.example.org", "example.net": "", "wwwexample.org": "org", ".": ""} {
		if got, ok := s.Longest(MustName(name)); got != want || ok != (want != "") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	s.Set(Root, "root")
	var c Climb[string]
	c.Start(&s, MustName("x.sub.example.org"))
	for i, want := range []struct {
		v      string
		before int
	}{{"sub.example.org", 1}, {"example.org", 2}, {"org", 3}, {"root", 4}} {
		v, before, ok := c.Next()
		if v != want.v || before != want.before || !ok || c.AtRoot() != (i == 3) {
			t.Errorf("step %d: %q %d %v, at root %v", i, v, before, ok, c.AtRoot())
		}
	}
	if _, _, ok := c.Next(); ok {
		t.Error("there is more")
	}
	c.Start(&s, Root)
	if v, before, ok := c.Next(); v != "root" || before != 0 || !ok || !c.AtRoot() {
		t.Errorf("the root: %q %d %v", v, before, ok)
	}
}
