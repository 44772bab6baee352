package corefile

import (
	"slices"
	"testing"
)

func TestBelow(t *testing.T) {
	for _, tc := range []struct{ root, name, want string }{
		{"", "a.pem", "a.pem"},
		{"", "/x/a.pem", "/x/a.pem"},
		{"/keys", "a.pem", "/keys/a.pem"},
		{"/keys", "/x/a.pem", "/x/a.pem"},
		{"keys", "../a.pem", "a.pem"},
	} {
		if got := Below(tc.root, tc.name); got != tc.want {
			t.Errorf("%q below %q: got %q, want %q", tc.name, tc.root, got, tc.want)
		}
	}
}

func TestAllBelow(t *testing.T) {
	names := []string{"a.pem", "/x/b.pem"}
	got := AllBelow("/keys", names)
	if want := []string{"/keys/a.pem", "/x/b.pem"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if names[0] != "a.pem" {
		t.Error("the line's own arguments were changed")
	}
}
