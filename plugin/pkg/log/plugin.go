package log

import "fmt"

// P is the logger of one plugin. It is a small value, to be copied freely; the zero P writes lines without
// a plugin's name.
//
// A Listener sees each line before it is written.
type P struct {
	prefix string // "plugin/NAME: "
}

// NewWithPlugin returns the logger whose lines begin with "plugin/NAME: " after the level.
func NewWithPlugin(name string) P { return P{prefix: "plugin/" + name + ": "} }

// Debug writes a debug line, joined as by fmt.Sprint, if D is set. If it is not, listeners see nothing either.
func (p P) Debug(v ...any) {
	if !D.Value() {
		return
	}
	tell(p.prefix, v, Listener.Debug)
	write(debugLevel, p.prefix, fmt.Sprint(v...))
}

// Debugf writes a debug line, formatted as by fmt.Sprintf, if D is set. If it is not, listeners see nothing either.
func (p P) Debugf(format string, v ...any) {
	if !D.Value() {
		return
	}
	tellf(p.prefix, format, v, Listener.Debugf)
	write(debugLevel, p.prefix, fmt.Sprintf(format, v...))
}

// Info writes an informational line, joined as by fmt.Sprint.
func (p P) Info(v ...any) {
	tell(p.prefix, v, Listener.Info)
	write(infoLevel, p.prefix, fmt.Sprint(v...))
}

// Infof writes an informational line, formatted as by fmt.Sprintf.
func (p P) Infof(format string, v ...any) {
	tellf(p.prefix, format, v, Listener.Infof)
	write(infoLevel, p.prefix, fmt.Sprintf(format, v...))
}

// Warning writes a warning, joined as by fmt.Sprint.
func (p P) Warning(v ...any) {
	tell(p.prefix, v, Listener.Warning)
	write(warningLevel, p.prefix, fmt.Sprint(v...))
}

// Warningf writes a warning, formatted as by fmt.Sprintf.
func (p P) Warningf(format string, v ...any) {
	tellf(p.prefix, format, v, Listener.Warningf)
	write(warningLevel, p.prefix, fmt.Sprintf(format, v...))
}

// Error writes an error, joined as by fmt.Sprint.
func (p P) Error(v ...any) {
	tell(p.prefix, v, Listener.Error)
	write(errorLevel, p.prefix, fmt.Sprint(v...))
}

// Errorf writes an error, formatted as by fmt.Sprintf.
func (p P) Errorf(format string, v ...any) {
	tellf(p.prefix, format, v, Listener.Errorf)
	write(errorLevel, p.prefix, fmt.Sprintf(format, v...))
}

// Fatal writes a line, joined as by fmt.Sprint, and ends the process with exit status 1.
func (p P) Fatal(v ...any) {
	tell(p.prefix, v, Listener.Fatal)
	write(fatalLevel, p.prefix, fmt.Sprint(v...))
	exit()
}

// Fatalf writes a line, formatted as by fmt.Sprintf, and ends the process with exit status 1.
func (p P) Fatalf(format string, v ...any) {
	tellf(p.prefix, format, v, Listener.Fatalf)
	write(fatalLevel, p.prefix, fmt.Sprintf(format, v...))
	exit()
}
