//go:build !windows && !plan9 && !js

package coremain

import (
	"bytes"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/log"
)

// holdSignals keeps signals that ask for a reload or an upgrade until release is called, when the process serves. Caddy
// takes an instance that starts for one that serves. It would hand over what has been opened so far, maybe nothing, so
// that two of a kind listen on one address; and a successor would have, beside its own, the sockets that its
// predecessor was given and had not looked at yet: the kernel queues a part of the queries there, for nobody.
//
// Signals that ask for the end are handled at once.
func holdSignals() (release func()) {
	held := make(chan os.Signal, 16)
	signal.Notify(held, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	started, released := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		defer signal.Stop(held)
		go insist()
		var later []os.Signal
		for {
			select {
			case s := <-held:
				if !asksForMore(s) {
					trapSignals()
					awaitCaddy()
					raise(s)
					return
				}
				if !slices.Contains(later, s) {
					later = append(later, s)
				}
			case <-started:
				more := newRequests() // from now on
				before := seen(held)
				more.add(append(later, before...)...)
				trapSignals()
				awaitCaddy()
				signal.Stop(held) // what has come by now stands in held, or Caddy is told
				end(before, true)
				end(seen(held), false)
				go more.see()
				return
			}
		}
	}()
	return func() {
		// Who reads the log may end. Without this its next line would end the server.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		close(started)
		<-released
	}
}

// asksForMore reports whether s is of no use before the process serves, or never.
func asksForMore(s os.Signal) bool {
	return s == syscall.SIGUSR1 || s == syscall.SIGUSR2 || s == syscall.SIGHUP
}

// caddyAsks are the functions of the goroutines in which Caddy asks for signals, and then waits for them: for
// interrupts in the first one.
var caddyAsks = [...]string{"caddy.trapSignalsCrossPlatform.func1(", "caddy.trapSignalsPosix.func1("}

// How many octets of stacks are looked at: at most those of some ten thousand goroutines.
const (
	leastStacks = 1 << 20 // as a beginning
	mostStacks  = 16 << 20
)

// awaitCaddy waits until Caddy has asked for signals, which nothing but its goroutines tell: they wait for one then.
// What comes before goes to nobody else than held. The time is limited; it reports false if that was not enough.
func awaitCaddy() (asks bool) {
	room := make([]byte, leastStacks)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		all, whole := stacks(room)
		switch {
		case caddyWaits(all):
			return true
		case whole:
			time.Sleep(time.Millisecond)
		default: // looking again costs more than it tells
			time.Sleep(200 * time.Millisecond)
			return false
		}
		room = all[:cap(all)]
	}
	return false
}

// stacks is those of all goroutines, or a part of them if that is too much. They are put into room if that suffices.
func stacks(room []byte) (all []byte, whole bool) {
	for {
		n := runtime.Stack(room, true)
		if n < len(room) || 4*n > mostStacks {
			return room[:n], n < len(room)
		}
		room = make([]byte, 4*n) // they were cut
	}
}

// caddyWaits reports whether each kind of Caddy's goroutines waits for a signal.
func caddyWaits(stacks []byte) bool {
	for _, f := range caddyAsks {
		waits := false
		for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
			waits = waits || bytes.Contains(stack, []byte(f)) && bytes.Contains(stack, []byte("[chan receive"))
		}
		if !waits {
			return false
		}
	}
	return true
}

// seen is what is left in held.
func seen(held chan os.Signal) (all []os.Signal) {
	for len(held) > 0 {
		all = append(all, <-held)
	}
	return all
}

// end raises again what asks for the end. Caddy may have been told, too, if it has asked for signals by then. That does
// no harm but for interrupts: a second one ends the process at once.
func end(signals []os.Signal, unheard bool) {
	for _, s := range signals {
		if !asksForMore(s) && (unheard || s != os.Interrupt) {
			raise(s)
		}
	}
}

// insistEvery is how often the end is asked for again.
const insistEvery = time.Second

// insistTimes is how often before an interrupt takes its place. Only tests change it.
var insistTimes = 5

// insist repeats a signal to end until the process has ended. Caddy handles one signal at a time, which takes a while
// if it is a reload that waits for an API: that is given up. Of what comes meanwhile it keeps one signal and drops the
// others. When it ends the process it looks at no further ones.
//
// A reload that waits for a disk that does not answer cannot be given up. Caddy has another goroutine for interrupts,
// which ends the process all the same.
func insist() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGQUIT)
	for n := 1; ; n++ {
		s := <-end
		dnsserver.GiveUp()
		time.Sleep(insistEvery)
		if n == insistTimes && !caddyEnds() {
			log.Warningf("The process ends in the middle of a reload, as that takes long")
			raise(os.Interrupt)
		}
		raise(s)
	}
}

// caddyEnds reports whether Caddy calls what is to be called at the end. Each stack that there is is looked at once,
// however many goroutines have it.
func caddyEnds() bool {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a buffer takes all
	return bytes.Contains(all.Bytes(), []byte("caddy.executeShutdownCallbacks+"))
}

// raise sends s to this process.
func raise(s os.Signal) { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }
