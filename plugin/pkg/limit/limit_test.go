package limit_test

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/limit"

	"github.com/coredns/caddy"
)

type settings struct{ streams, workers *int }

var directive = corefile.Directive[settings]{
	Name: "x",
	Options: corefile.Table[settings]{
		limit.Option("streams", "of a connection", 0, func(s *settings) **int { return &s.streams }),
		limit.Option("workers", "of all", 1, func(s *settings) **int { return &s.workers }),
	},
}

func TestOption(t *testing.T) {
	const place = "plugin/x: Testfile:2 - Error during parsing: "
	for in, want := range map[string]string{
		"":                      "",
		"streams 0":             "",
		"streams 7\nworkers 1":  "",
		"streams":               "Wrong argument count",
		"streams 1 2":           "Wrong argument count",
		"streams x":             place + "invalid streams value 'x': strconv.Atoi: ",
		"streams -1":            place + "streams must be a non-negative integer: -1",
		"workers 0":             place + "workers must be a positive integer: 0",
		"workers -1":            place + "workers must be a positive integer: -1",
		"streams 1\nstreams 1":  "Testfile:3 - Error during parsing: streams already defined for this server block",
		"strems 1":              place + "unknown property 'strems'",
		"streams 1\nworkers 1s": "invalid workers value '1s': ",
	} {
		var s settings
		err := directive.Parse(caddy.NewTestController("dns", "x {\n"+in+"\n}"), &s)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got error %v, want %q", in, err, want)
		}
		if set := strings.Contains(in, "streams 7"); err == nil && set && (*s.streams != 7 || *s.workers != 1) {
			t.Errorf("%q: got %v, %v", in, *s.streams, *s.workers)
		}
		if in == "" && (s.streams != nil || s.workers != nil) {
			t.Errorf("got %v", s)
		}
	}
}
