package coremain

import (
	"os"
	"os/signal"
	"runtime"

	"github.com/coredns/caddy"
)

// trapSignals has caddy handle signals from now on. Caddy asks for them in goroutines of its own: what came before
// these have run would end the process.
func trapSignals() {
	caddy.TrapSignals()
	runtime.Gosched() // they have begun to ask
	done := make(chan os.Signal, 1)
	signal.Notify(done, os.Interrupt) // and this waits for who asks already
	signal.Stop(done)
}
