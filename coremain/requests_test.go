//go:build !windows && !plan9 && !js

package coremain

import (
	golog "log"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
)

// What Caddy begins is heard whatever a program that embeds the server has its lines begin with, and closes what was
// asked for. Whoever asks meanwhile and whoever logs do not wait for each other.
func TestRequestsAreHeard(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	log.SetOutput(null)
	defer golog.SetOutput(os.Stderr)
	r := &requests{in: make(chan os.Signal, 1), open: map[os.Signal]bool{}}
	log.Hear(r.hear)
	defer log.Hear(func([]byte) {})
	defer golog.SetFlags(golog.Flags())
	defer golog.SetPrefix("")
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
