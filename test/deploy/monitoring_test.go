package deploy

import (
	"os/exec"
	"testing"
)

// Prometheus takes the rules, and the alerts come when rules_test.yaml says.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	for _, args := range [][]string{
		{"check", "rules", here("monitoring", "rules.yaml")},
		{"test", "rules", here("monitoring", "rules_test.yaml")},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
