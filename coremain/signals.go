package coremain

import (
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/caddy"
)

// trapSignals has caddy handle signals from now on. Caddy asks for them in goroutines of its own: what came before
// these have run would end the process.
func trapSignals() {
	caddy.OnProcessExit = slices.Insert(caddy.OnProcessExit, 0, keepForeignPidFile)
	caddy.TrapSignals()
	runtime.Gosched() // they have begun to ask
	done := make(chan os.Signal, 1)
	signal.Notify(done, os.Interrupt) // and this waits for who asks already
	signal.Stop(done)
}

// keepForeignPidFile goes before Caddy, which removes the file at the end: a process that has taken the place of this
// one (SIGUSR2) has written its own id there.
func keepForeignPidFile() {
	text, err := os.ReadFile(caddy.PidFile)
	if err == nil && strings.TrimSpace(string(text)) != strconv.Itoa(os.Getpid()) {
		caddy.PidFile = ""
	}
}
