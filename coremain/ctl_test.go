package coremain

import (
	"slices"
	"strings"
	"testing"
)

// TestCtlUsage: the error tells what may stand where something else stands, or nothing.
func TestCtlUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"zone", "example.org"}, "zone is to be followed by one of freeze, thaw, export"},
		{[]string{"nta"}, "nta is to be followed by one of add, del"},
	} {
		if c, _ := findCtl(tc.args); c != nil {
			t.Errorf("%v: %s", tc.args, c.name)
		}
		if err := ctlUsage(tc.args); err.Error() != tc.want {
			t.Errorf("%v: %v, want %s", tc.args, err, tc.want)
		}
	}
}

// Large limits are told in full.
func TestShowLimits(t *testing.T) {
	var out strings.Builder
	if err := showLimits(&out, []byte(`{"listeners":{"dns://:53":{"in_flight_bytes":1073741824,"queries":-1,"read":1.5}}}`)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"LISTENER LIMIT VALUE", "dns://:53 in_flight_bytes 1073741824", "dns://:53 queries -1", "dns://:53 read 1.5"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
