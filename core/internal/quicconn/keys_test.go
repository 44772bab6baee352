package quicconn

import (
	"os"
	"testing"
)

// A process has the keys of the one that has begun it, and others if what that has handed on are none.
func TestKeysAreHandedOn(t *testing.T) {
	t.Setenv(keysVar, "") // also to have it as it was before
	first := findKeys()
	if first.reset == (keys{}).reset || first.token == (keys{}).token {
		t.Fatal("there are none")
	}
	if findKeys() != first {
		t.Error("the next process has others")
	}
	os.Setenv(keysVar, "abcd")
	if k := findKeys(); k == first || k == (keys{}) {
		t.Errorf("of few octets %x are made", k)
	}
}
