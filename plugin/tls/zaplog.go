package tls

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/log"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapLogger is a logger for certmagic, whose lines are lines of this plugin.
var zapLogger = sync.OnceValue(func() *zap.Logger { return zap.New(&lines{}) })

// maxLine is how many octets of a line are logged. An authority may reply with a page of any length.
const maxLine = 4 << 10

// lines is a core of zap that writes a line for each entry: its message, and what it tells beside in a fixed order.
type lines struct{ fields []zapcore.Field }

// Enabled says that all is told; the log itself leaves out what is for debugging.
func (l *lines) Enabled(zapcore.Level) bool { return true }

// With adds fields to each entry.
func (l *lines) With(fields []zapcore.Field) zapcore.Core {
	return &lines{append(slices.Clone(l.fields), fields...)}
}

// Check takes the entry.
func (l *lines) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, l)
}

// Write writes the line.
func (l *lines) Write(e zapcore.Entry, fields []zapcore.Field) error {
	told := zapcore.NewMapObjectEncoder()
	for _, f := range append(slices.Clone(l.fields), fields...) {
		f.AddTo(told)
	}
	var b strings.Builder
	b.WriteString(e.Message)
	for _, name := range slices.Sorted(maps.Keys(told.Fields)) {
		fmt.Fprintf(&b, " %s=%v", name, told.Fields[name])
	}
	line := log.InOneLine(b.String()[:min(b.Len(), maxLine)]) // much of it is what the authority says
	switch {
	case e.Level >= zapcore.ErrorLevel:
		logger.Error(line)
	case e.Level == zapcore.WarnLevel:
		logger.Warning(line)
	case e.Level == zapcore.InfoLevel:
		logger.Info(line)
	default:
		logger.Debug(line)
	}
	return nil
}

// Sync has nothing to do.
func (l *lines) Sync() error { return nil }
