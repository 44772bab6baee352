package eventloop_test

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
)

// Each is asked until one has ended something.
func TestMakeRoom(t *testing.T) {
	if eventloop.MakeRoom(eventloop.AtWork) {
		t.Error("nobody ended anything")
	}
	var told []string
	ends := ""
	for _, name := range []string{"a", "b"} {
		eventloop.OnCrowd(func(wanted eventloop.Place) bool {
			if wanted != eventloop.AtWork {
				t.Errorf("%s: %v is wanted", name, wanted)
			}
			told = append(told, name)
			return ends == name
		})
	}
	for _, tc := range []struct {
		ends string
		made bool
		told []string
	}{{"a", true, []string{"a"}}, {"b", true, []string{"a", "b"}}, {"", false, []string{"a", "b"}}} {
		told, ends = nil, tc.ends
		if made := eventloop.MakeRoom(eventloop.AtWork); made != tc.made || !slices.Equal(told, tc.told) {
			t.Errorf("%+v: made %t, told %v", tc, made, told)
		}
	}
	ends = "none"
}
