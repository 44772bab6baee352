package etcd

import (
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quietLogger makes the client's log lines lines of the server: errors and warnings, for debugging.
func quietLogger() *zap.Logger { return zap.New(clientLog{}) }

// clientLog is a zapcore.Core that writes to the server's log.
type clientLog struct{}

// Enabled implements zapcore.LevelEnabler.
func (clientLog) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c clientLog) With([]zapcore.Field) zapcore.Core { return c }

// Check implements zapcore.Core.
func (c clientLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core. Errors of requests reach the log on the way of the query, too, so that these are for
// debugging only.
func (clientLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := []string{e.Message}
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			text = append(text, err.Error())
		}
	}
	logger.Debugf("Client: %s", strings.Join(text, ": "))
	return nil
}

// Sync implements zapcore.Core.
func (clientLog) Sync() error { return nil }
