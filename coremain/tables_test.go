package coremain

import (
	"strings"
	"testing"
)

// What is wrong with a zone stands in its state, and why in the last column.
func TestShowZones(t *testing.T) {
	const zone = `{"name":"example.org.","plugin":"file","source":"db","loaded":true,"serial":7,"records":3`
	for more, want := range map[string]string{
		"":                                      "example.org. file ok 7 3 - - - db -",
		`,"failure":"Parsing zone: x"`:          "example.org. file failing 7 3 - - - db Parsing zone: x",
		`,"expired":true,"failure":"no answer"`: "example.org. file expired 7 3 - - - db no answer",
		`,"loaded":false,"failure":"no such directory"`: "example.org. file missing 7 3 - - - db no such directory",
		`,"frozen":true`: "example.org. file frozen 7 3 - - - db -",
	} {
		var out strings.Builder
		if err := showZones(&out, []byte(`{"zones":[`+zone+more+`}]}`)); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if got := strings.Join(strings.Fields(lines[len(lines)-1]), " "); got != want {
			t.Errorf("%s: got %q, want %q", more, got, want)
		}
	}
}
