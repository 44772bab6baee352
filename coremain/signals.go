package coremain

import (
	"os"
	"os/signal"
	"runtime"

	"github.com/coredns/caddy"
)

// trapSignals has signals handled from now on. Caddy asks for them in goroutines of its own: what came before these
// have run would end the process, and a start is short.
func trapSignals() {
	caddy.TrapSignals()
	runtime.Gosched() // they have begun to ask
	done := make(chan os.Signal, 1)
	signal.Notify(done, os.Interrupt) // and this waits for who asks already
	signal.Stop(done)
}
