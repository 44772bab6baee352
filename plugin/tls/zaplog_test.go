package tls

import (
	"errors"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"go.uber.org/zap"
)

// What an authority says is logged in one line, which is not endless, and does nothing on a terminal.
func TestWhatAnAuthoritySays(t *testing.T) {
	out := logtest.Capture(t)
	zapLogger().Error("will retry", zap.Error(errors.New("HTTP 500: no\n[INFO] Reloading complete\x1b[2J"+strings.Repeat("x", 1<<20))))
	got := out.String()
	if !strings.HasPrefix(got, "[ERROR] plugin/tls: will retry error=HTTP 500: no; [INFO] Reloading complete [2Jxxx") {
		t.Errorf("got %.200q", got)
	}
	if strings.Count(got, "\n") != 1 || len(got) > 8<<10 {
		t.Errorf("got %d lines, %d octets", strings.Count(got, "\n"), len(got))
	}
}
