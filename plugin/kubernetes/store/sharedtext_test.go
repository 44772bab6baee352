package store

import (
	"fmt"
	"strings"
	"testing"
)

// Nodes and zones are told as they are, zones in lower case, and each stands once in the text of its slice.
func TestSharedTexts(t *testing.T) {
	s := New(everything(), nil)
	long := strings.Repeat("n", maxPart+1) // no name of the API is so long: it is left out
	for _, nodes := range []int{1, 7, 8, 9, 200, 3} {
		sl := newSlice("ns1", "web-a", "web")
		length := len("web-a") + len("web") + len("east") + len("\u00e9st")
		for i := range 2 * nodes {
			e := endpoint(fmt.Sprintf("10.0.%d.%d", i/250, i%250))
			e.NodeName, e.Zone = ptr(fmt.Sprintf("node-%d", i%nodes)), ptr("East")
			if i%2 == 1 {
				e.Zone = ptr("\u00c9st")
			}
			if i < nodes {
				length += len(*e.NodeName)
			}
			sl.Endpoints = append(sl.Endpoints, e)
		}
		empty, tooLong := endpoint("192.0.2.1"), endpoint("192.0.2.2")
		tooLong.NodeName, tooLong.Zone = &long, &long
		sl.Endpoints = append(sl.Endpoints, empty, tooLong)
		s.putSlice(t, sl)

		all := s.Slices([]byte("ns1"), []byte("web"))
		got := all.Next()
		for i := range 2 * nodes {
			e, zone := got.Endpoint(i), "east"
			if i%2 == 1 {
				zone = "\u00e9st"
			}
			if want := fmt.Sprintf("node-%d", i%nodes); e.Node != want || e.Zone != zone {
				t.Errorf("endpoint %d of %d nodes: node %q, zone %q, want %q and %q", i, nodes, e.Node, e.Zone, want, zone)
			}
		}
		for i := 2 * nodes; i < got.Len(); i++ {
			if e := got.Endpoint(i); e.Node != "" || e.Zone != "" {
				t.Errorf("endpoint %d: node %q, zone %q", i, e.Node, e.Zone)
			}
		}
		for i := range got.Len() {
			length += len(got.Endpoint(i).Hostname) + len(got.Endpoint(i).Target)
		}
		if len(got.text) != length {
			t.Errorf("%d nodes: the text has %d octets, want %d", nodes, len(got.text), length)
		}
	}
}
