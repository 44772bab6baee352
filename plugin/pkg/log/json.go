package log

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// structured is where lines go as JSON objects; nil while they are text.
var structured atomic.Pointer[io.Writer]

// SetJSON makes each line of the process a JSON object on out, as package log/slog writes it: time, level and msg,
// and plugin where a plugin logs. What others write to Go's standard logger becomes a line of level INFO. It is
// called once, before anything is logged. With nil, lines are text again, and go to the standard logger.
func SetJSON(out io.Writer) {
	Sync()
	if out == nil {
		structured.Store(nil)
		return
	}
	structured.Store(&out)
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(bridge{})
}

// JSON reports whether lines are JSON objects.
func JSON() bool { return structured.Load() != nil }

// bridge takes the lines of Go's standard logger.
type bridge struct{}

func (bridge) Write(line []byte) (int, error) {
	tellHearer(line)
	record(infoLevel, "", strings.TrimSuffix(string(line), "\n"))
	Flush()
	return len(line), nil
}

// Record logs a line with the level INFO and fields of its own, within a tenth of a second: it is for lines about
// single queries, as Line is. It does nothing unless lines are JSON objects.
func Record(text string, fields ...slog.Attr) {
	if JSON() {
		record(infoLevel, "", text, fields...)
	}
}

// Print prints text on standard output as it stands, among the lines of the log if these go there; where lines are JSON
// objects, each line of it is one.
func Print(text string) {
	if JSON() {
		for line := range strings.Lines(text) {
			Info(strings.TrimSuffix(line, "\n"))
		}
		return
	}
	if p, ok := log.Writer().(*patient); ok && p.File == os.Stdout {
		p.Write([]byte(text))
		return
	}
	fmt.Print(text)
}

// levelFatal is the level of a line after which the process ends.
const levelFatal = slog.LevelError + 4

var slogLevels = map[string]slog.Level{
	debugLevel: slog.LevelDebug, infoLevel: slog.LevelInfo, warningLevel: slog.LevelWarn, errorLevel: slog.LevelError, fatalLevel: levelFatal,
}

// encoder makes an object of a line, in memory of its own.
type encoder struct {
	handler slog.Handler
	line    bytes.Buffer
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.handler = slog.NewJSONHandler(&e.line, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: nameFatal})
	return e
}}

// nameFatal writes levelFatal as a word.
func nameFatal(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.LevelKey && a.Value.Any() == levelFatal {
		return slog.String(slog.LevelKey, "FATAL")
	}
	return a
}

// record gathers the object of a line. prefix is that of a P.
func record(level, prefix, text string, fields ...slog.Attr) {
	out := structured.Load()
	if out == nil {
		return // they are text again, just now
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.line.Reset()
	r := slog.NewRecord(time.Now(), slogLevels[level], text, 0)
	if name, ok := strings.CutPrefix(prefix, "plugin/"); ok {
		r.AddAttrs(slog.String("plugin", strings.TrimSuffix(name, ": ")))
	}
	r.AddAttrs(fields...)
	_ = e.handler.Handle(context.Background(), r) // a buffer takes all
	gather(*out, e.line.Bytes())
}
