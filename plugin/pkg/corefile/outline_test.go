package corefile

import (
	"fmt"
	"testing"
	"time"
)

// A Corefile with a block for each of many zones, all of which import a snippet, is read to its end, and in a time that
// grows as it does: what is behind an import is not copied for each.
func TestOutlineOfManyImports(t *testing.T) {
	text := "(common) {\n    errors\n    cache {\n        success 100\n    }\n}\n"
	const blocks = 3000
	for i := range blocks {
		text += fmt.Sprintf("z%d.example.org {\n    import common\n    whoami\n}\n", i)
	}
	began := time.Now()
	o := Read("Corefile", []byte(text))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if len(o.Blocks) != blocks || len(o.Open) > 0 {
		t.Fatalf("%d blocks, %v open", len(o.Blocks), o.Open)
	}
	for i, b := range o.Blocks {
		if len(b.Directives) != 3 || b.Keys[0].Text != fmt.Sprintf("z%d.example.org", i) || !b.Directives[1].Has("success") {
			t.Fatalf("block %d: %v", i, b)
		}
	}
}
