package client

import (
	"fmt"
	"strings"
	"sync"

	clog "github.com/coredns/coredns/plugin/pkg/log"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// routeLog makes what the Kubernetes libraries log lines of ours. It happens with
// the first client, not when the program starts: who has none keeps klog as it is.
var routeLog = sync.OnceFunc(func() {
	klog.SetLoggerWithOptions(logr.New(sink{log: clog.NewWithPlugin("kubernetes")}), klog.ContextualLogger(true))
})

// sink writes klog's lines to our log.
type sink struct {
	log    clog.P
	suffix string // values that all lines have
}

// Init implements logr.LogSink.
func (sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink: details only when debugging.
func (sink) Enabled(level int) bool { return level == 0 || clog.D.Value() }

// Info implements logr.LogSink.
func (s sink) Info(level int, msg string, values ...any) {
	if level == 0 {
		s.log.Info(s.line(msg, values))
		return
	}
	s.log.Debug(s.line(msg, values))
}

// Error implements logr.LogSink.
func (s sink) Error(err error, msg string, values ...any) {
	line := s.line(msg, values)
	if err != nil {
		line += ": " + err.Error()
	}
	s.log.Error(line)
}

// WithValues implements logr.LogSink.
func (s sink) WithValues(values ...any) logr.LogSink {
	s.suffix = s.line("", values)
	return s
}

// WithName implements logr.LogSink; the lines bear the plugin's name.
func (s sink) WithName(string) logr.LogSink { return s }

// line joins a message and values that come as name, value, name, value.
func (s sink) line(msg string, values []any) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(msg, "\n"))
	b.WriteString(s.suffix)
	for i := 0; i+1 < len(values); i += 2 {
		fmt.Fprintf(&b, " %v=%v", values[i], values[i+1])
	}
	return b.String()
}
