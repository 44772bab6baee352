package coremain

import "testing"

func TestVersionAt(t *testing.T) {
	for tag, want := range map[string]string{
		"":                          CoreVersion + "-dev",
		"nightly":                   CoreVersion + "-dev",
		"v1.0.0":                    CoreVersion + "-dev",
		"v" + CoreVersion + "0":     CoreVersion + "-dev",
		"v" + CoreVersion:           CoreVersion,
		CoreVersion:                 CoreVersion,
		"v" + CoreVersion + "-rc.1": CoreVersion + "-rc.1",
	} {
		if got := versionAt(tag); got != want {
			t.Errorf("at %q: got %s, want %s", tag, got, want)
		}
	}
}
