package etcd

import (
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quietLogger makes the client's log lines lines of the server: why there is no connection, and for debugging errors and warnings.
func quietLogger() *zap.Logger { return zap.New(new(clientLog)) }

// clientLog is a zapcore.Core that writes to the server's log.
type clientLog struct{ warnOnce warnings }

// Enabled implements zapcore.LevelEnabler.
func (*clientLog) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

// With implements zapcore.Core.
func (c *clientLog) With([]zapcore.Field) zapcore.Core { return c }

// Check implements zapcore.Core.
func (c *clientLog) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// noConnection stands before the reason in an error of the client.
const noConnection = "connection error: desc = "

// Write implements zapcore.Core. Errors of requests reach the log on the way of the query, too, so that these are for
// debugging only. That there is no connection does not: of that, a query knows no more than that its time was over.
func (c *clientLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := []string{e.Message}
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			text = append(text, err.Error())
			if _, why, ok := strings.Cut(err.Error(), noConnection); ok && c.warnOnce.due(e.Message, time.Now()) {
				logger.Warningf("No connection: %s", why)
			}
		}
	}
	logger.Debugf("Client: %s", strings.Join(text, ": "))
	return nil
}

// Sync implements zapcore.Core.
func (*clientLog) Sync() error { return nil }
