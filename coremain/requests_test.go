//go:build !windows && !plan9 && !js

package coremain

import (
	golog "log"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// silence has Go's standard logger write to nobody until the test ends.
func silence(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	log.SetOutput(null)
	flags := golog.Flags()
	golog.SetFlags(0)
	t.Cleanup(func() {
		log.Hear(func([]byte) {})
		golog.SetFlags(flags)
		golog.SetPrefix("")
		golog.SetOutput(os.Stderr)
		null.Close()
	})
}

// What Caddy is told first, and begins at once, is not asked for again.
func TestRequestsAreAskedForOnce(t *testing.T) {
	silence(t)
	r, caddy, began := newRequests(), make(chan os.Signal, 1), make(chan bool)
	signal.Notify(caddy, syscall.SIGUSR1)
	defer func() {
		for _, c := range []chan os.Signal{caddy, r.in, r.wake, r.end} {
			signal.Stop(c)
		}
		close(caddy)
	}()
	go func() {
		for range caddy {
			golog.Print("[INFO] SIGUSR1: Reloading")
			began <- true
		}
	}()
	for range 20_000 {
		raise(syscall.SIGUSR1)
		<-began
		signal.Notify(r.in, syscall.SIGUSR1) // by now the signal has come everywhere
		r.add()
		r.mu.Lock()
		open := len(r.open)
		r.mu.Unlock()
		if open > 0 {
			t.Fatal("it is asked for again")
		}
	}
}

// However often one thing is asked for, another one is not forgotten.
func TestManyRequests(t *testing.T) {
	silence(t)
	r := &requests{wake: make(chan os.Signal), end: make(chan os.Signal), in: make(chan os.Signal, 1), open: map[os.Signal]bool{}}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		r.see()
	}()
	for _, s := range []os.Signal{syscall.SIGUSR1, syscall.SIGUSR1, syscall.SIGUSR2} {
		r.in <- s
		r.wake <- s
	}
	r.end <- syscall.SIGTERM
	<-ended
	if len(r.in) > 0 || !r.open[syscall.SIGUSR1] || !r.open[syscall.SIGUSR2] {
		t.Errorf("open are %v, %d have not been looked at", r.open, len(r.in))
	}
}

// What Caddy begins is heard whatever a program that embeds the server has its lines begin with, and closes what was
// asked for. Whoever asks meanwhile and whoever logs do not wait for each other.
func TestRequestsAreHeard(t *testing.T) {
	silence(t)
	r := &requests{in: make(chan os.Signal, 1), open: map[os.Signal]bool{}}
	log.Hear(r.hear)
	for _, flags := range []int{0, golog.LstdFlags, golog.Lshortfile | golog.LUTC, golog.LstdFlags | golog.Lmsgprefix} {
		for _, prefix := range []string{"", "dns: "} {
			golog.SetFlags(flags)
			golog.SetPrefix(prefix)
			r.add(syscall.SIGUSR1, syscall.SIGUSR2)
			golog.Print("[INFO] SIGUSR2: Upgrading")
			if r.open[syscall.SIGUSR2] || !r.open[syscall.SIGUSR1] {
				t.Errorf("flags %b, prefix %q: open are %v", flags, prefix, r.open)
			}
			clear(r.open)
		}
	}
	r.add(syscall.SIGUSR1)
	golog.Print(`a line about "[INFO] SIGUSR1: Reloading" and more`)
	if !r.open[syscall.SIGUSR1] {
		t.Error("a line of somebody else is taken for Caddy's")
	}
	clear(r.open)

	ended := make(chan bool, 2)
	for _, f := range []func(){func() { golog.Print("[INFO] SIGUSR1: Reloading") }, func() { r.ask() }} {
		go func() {
			for range 200_000 {
				f()
			}
			ended <- true
		}()
	}
	for range 2 {
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			panic("who asks and who logs wait for each other") // which nothing that logs would tell
		}
	}
}
