//go:build linux

// Command syncbench measures what it costs to read a cluster into a store: CPU seconds and
// memory from the program's start to the first sync, and some seconds later.
//
//	KUBECONFIG=… syncbench -pods
//	KUBECONFIG=… syncbench -pods -with informers
//
// -with informers keeps the same objects in client-go's informers with the trimmed types of
// package object instead, for comparison; -with lean feeds client-go's reflectors with our lean decoding
// and puts what they gather into our store.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/store"
)

func main() {
	pods := flag.Bool("pods", false, "keep pods, too")
	with := flag.String("with", "store", "store, lean or informers")
	settle := flag.Duration("settle", 3*time.Second, "how long to wait before the second look at memory")
	stay := flag.Bool("stay", false, "stay until interrupted")
	flag.Parse()
	config := client.Config{Kubeconfig: client.Kubeconfig(os.Getenv("KUBECONFIG"), ""), UserAgent: client.UserAgent("bench", "none")}

	begin := time.Now()
	var describe func() string
	switch *with {
	case "store":
		describe = viaStore(config, *pods)
	case "lean":
		describe = viaLeanReflectors(config, *pods)
	case "informers":
		describe = viaInformers(config, *pods)
	default:
		fatal(fmt.Errorf("unknown way %q", *with))
	}
	fmt.Printf("%s, pods %v: synced after %.2f s, %s\n", *with, *pods, time.Since(begin).Seconds(), usage())
	time.Sleep(*settle)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("  %v later: %s; Go heap in use %.1f MiB, live objects %d, collections %d\n  %s\n",
		*settle, usage(), float64(m.HeapInuse)/(1<<20), m.Mallocs-m.Frees, m.NumGC, describe())
	if *stay {
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
		<-ch
		fmt.Printf("  at the end: %s\n  %s\n", usage(), describe())
	}
}

func viaStore(config client.Config, pods bool) func() string {
	c, err := client.New(config)
	if err != nil {
		fatal(err)
	}
	s := store.New(store.Config{Endpoints: true, Pods: pods}, c)
	s.Start()
	<-s.Synced()
	return func() string {
		st := s.Stats()
		return fmt.Sprintf("%d services, %d events, %d gaps", len(s.Services()), st.Events, st.Gaps)
	}
}

// usage says what the process has used so far.
func usage() string {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		fatal(err)
	}
	cpu := float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
	return fmt.Sprintf("CPU %.2f s, RssAnon %.1f MiB, RssFile %.1f MiB, peak %.1f MiB", cpu, status("RssAnon"), status("RssFile"), status("VmHWM"))
}

// status returns a line of /proc/self/status in MiB.
func status(key string) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(v)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
