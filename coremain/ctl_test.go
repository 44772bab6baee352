package coremain

import "testing"

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
