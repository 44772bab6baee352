// Package acktest shows that a peer which gathers small writes (RFC 896) is not kept waiting for an acknowledgement.
// Start at Prompt.
package acktest

import (
	"testing"
	"time"
)

// delay is less than how long Linux puts off an acknowledgement, at least.
const delay = 38 * time.Millisecond

// Prompt fails the test if each of ten exchanges takes as long as an acknowledgement that is put off. A machine that is
// busy makes some of them slow, not all. before, which may be nil, is not counted.
func Prompt(t testing.TB, before, exchange func()) {
	t.Helper()
	quickest := time.Hour
	for range 10 {
		if before != nil {
			before()
		}
		began := time.Now()
		exchange()
		quickest = min(quickest, time.Since(began))
	}
	if quickest > delay {
		t.Errorf("the quickest exchange took %v", quickest)
	}
}
