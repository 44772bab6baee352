package durations_test

import (
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/durations"
)

func TestNewDurationFromArg(t *testing.T) {
	for arg, want := range map[string]time.Duration{
		"0":          0,
		"10":         10 * time.Second,
		"-10":        -10 * time.Second,
		"9223372036": 9223372036 * time.Second,
		"10s":        10 * time.Second,
		"1.5h":       90 * time.Minute,
		"1m30s":      90 * time.Second,
		"100ms":      100 * time.Millisecond,
	} {
		if got, err := durations.NewDurationFromArg(arg); got != want || err != nil {
			t.Errorf("%q: got %v, %v, want %v", arg, got, err, want)
		}
	}
}

func TestNewDurationFromArgErrors(t *testing.T) {
	for _, arg := range []string{"", "s", "1.5", "10 s", "10x", "1_0", "9223372037", "99999999999999999999"} {
		got, err := durations.NewDurationFromArg(arg)
		if err == nil || err.Error() != "failed to parse duration '"+arg+"'" || got != 0 {
			t.Errorf("%q: got %v, %v", arg, got, err)
		}
	}
}
