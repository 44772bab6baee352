package msg_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/etcd/msg"
)

// services reads services from texts "HOST GROUP KEY", where the group "-" is none.
func services(texts ...string) []msg.Service {
	var sx []msg.Service
	for _, text := range texts {
		f := strings.Fields(text)
		s := msg.Service{Host: f[0], Group: f[1], Key: f[2]}
		if s.Group == "-" {
			s.Group = ""
		}
		sx = append(sx, s)
	}
	return sx
}

func TestGroup(t *testing.T) {
	for _, tc := range []struct {
		name string
		sx   []msg.Service
		want string
	}{
		{"nothing", nil, ""},
		{"no groups", services("1 - /s/a", "2 - /s/b/c"), "1 2"},
		{"one group", services("1 g /s/a", "2 g /s/b"), "1 2"},
		{"shortest decides", services("1 g /s/a", "2 h /s/b/c", "3 g /s/b/d"), "1 3"},
		{"shortest stands last", services("1 h /s/a/b", "2 h /s/a/c", "3 g /s/d"), "3"},
		{"those without a group stay", services("1 g /s/a", "2 - /s/b", "3 h /s/b/c", "4 - /s/b/d"), "1 2 4"},
		{"a shorter key without a group", services("1 - /s", "2 g /s/a", "3 h /s/a/b"), "1 2"},
		{"the shortest disagree", services("1 g /s/a", "2 h /s/b", "3 g /s/b/c"), "1 2 3"},
		{"they disagree, one deeper first", services("1 g /s/b/c", "2 g /s/a", "3 h /s/b"), "1 2 3"},
		{"the deeper ones disagree", services("1 h /s/b/c", "2 i /s/b/d", "3 g /s/a"), "3"},
	} {
		before := slices.Clone(tc.sx)
		var hosts []string
		for _, s := range msg.Group(tc.sx) {
			hosts = append(hosts, s.Host)
		}
		if got := strings.Join(hosts, " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if !slices.Equal(tc.sx, before) {
			t.Errorf("%s: the services were changed", tc.name)
		}
	}
}
