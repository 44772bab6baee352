// Package log writes the server's own log: a level, the plugin's name, a text.
//
//	P.Infof ──▶ Listeners ──▶ level, prefix, text ──▶ Go's log package ──▶ its output
//
// A line of a plugin reads "[INFO] plugin/NAME: text", one of the core "[INFO] text"; after SetJSON it is an
// object with level, plugin and text apart (json.go). Lines of text go to the standard logger of Go's log package;
// who embeds the server redirects them with log.SetOutput. This package holds no lock while it writes, so the
// output may gather lines, and if it has a method Flush() error, that is called before Fatal ends the process.
//
// Every function may be called from any number of goroutines at the same time. Debug lines are written only
// while D is set; otherwise their arguments are not looked at. The caller still boxes them, so code that
// runs for each query asks D.Value() first.
//
// Start at NewWithPlugin.
package log

import (
	"fmt"
	"io"
	"log"
	"os"
)

// Levels, as they stand at the beginning of a line.
const (
	debugLevel   = "[DEBUG] "
	infoLevel    = "[INFO] "
	warningLevel = "[WARNING] "
	errorLevel   = "[ERROR] "
	fatalLevel   = "[FATAL] "
)

// Debug writes a debug line of the core, joined as by fmt.Sprint, if D is set.
func Debug(v ...any) {
	if D.Value() {
		write(debugLevel, "", fmt.Sprint(v...))
	}
}

// Debugf writes a debug line of the core, formatted as by fmt.Sprintf, if D is set.
func Debugf(format string, v ...any) {
	if D.Value() {
		write(debugLevel, "", fmt.Sprintf(format, v...))
	}
}

// Info writes an informational line of the core, joined as by fmt.Sprint.
func Info(v ...any) { write(infoLevel, "", fmt.Sprint(v...)) }

// Infof writes an informational line of the core, formatted as by fmt.Sprintf.
func Infof(format string, v ...any) { write(infoLevel, "", fmt.Sprintf(format, v...)) }

// Warning writes a warning of the core, joined as by fmt.Sprint.
func Warning(v ...any) { write(warningLevel, "", fmt.Sprint(v...)) }

// Warningf writes a warning of the core, formatted as by fmt.Sprintf.
func Warningf(format string, v ...any) { write(warningLevel, "", fmt.Sprintf(format, v...)) }

// Error writes an error of the core, joined as by fmt.Sprint.
func Error(v ...any) { write(errorLevel, "", fmt.Sprint(v...)) }

// Errorf writes an error of the core, formatted as by fmt.Sprintf.
func Errorf(format string, v ...any) { write(errorLevel, "", fmt.Sprintf(format, v...)) }

// Fatal writes a line, joined as by fmt.Sprint, and ends the process with exit status 1.
func Fatal(v ...any) {
	write(fatalLevel, "", fmt.Sprint(v...))
	exit()
}

// Fatalf writes a line, formatted as by fmt.Sprintf, and ends the process with exit status 1.
func Fatalf(format string, v ...any) {
	write(fatalLevel, "", fmt.Sprintf(format, v...))
	exit()
}

// Discard silences the log for the rest of the process, which tests do. It redirects Go's standard logger.
func Discard() { log.SetOutput(io.Discard) }

// write hands one line to Go's standard logger. It is always two calls below the code that logs, which is
// what makes the logger's file and line flags point there.
func write(level, prefix, text string) {
	if JSON() {
		record(level, prefix, text)
		Flush()
		return
	}
	Flush()                              // what was gathered came before
	_ = log.Output(3, level+prefix+text) // an output that fails has nowhere to say so
}

// exit ends the process after what the output holds back has been written.
func exit() {
	Sync()
	out := log.Writer()
	if s := structured.Load(); s != nil {
		out = *s
	}
	if f, ok := out.(interface{ Flush() error }); ok {
		_ = f.Flush()
	}
	os.Exit(1)
}
