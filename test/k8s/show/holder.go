package main

import (
	"fmt"
	"os"
)

// holder is the clusterbed.T of a program: it has what is to be cleaned up, and panics with a failure where a test would fail.
type holder struct {
	cleanups []func()
}

// failure is why the program cannot go on.
type failure string

func (f failure) Error() string { return string(f) }

func (h *holder) Helper()                           {}
func (h *holder) Cleanup(f func())                  { h.cleanups = append(h.cleanups, f) }
func (h *holder) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (h *holder) Fatalf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }
func (h *holder) Skipf(format string, args ...any)  { h.Fatalf(format, args...) }

func (h *holder) TempDir() string {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		h.Fatalf("folder for the test bed: %v", err)
	}
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end does what is to be cleaned up, the last first.
func (h *holder) end() {
	for i := len(h.cleanups) - 1; i >= 0; i-- {
		h.cleanups[i]()
	}
}
