package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// tally is what a client, or all of them together, counted.
type tally struct {
	sent     int
	answered int
	wrong    int // answered, but not as the query expects
	lost     int
	rcodes   [16]int
	waits    []time.Duration // from query to response; of paced load only
}

// count takes in one response to the query of s.
func (t *tally) count(r reply, s slot) {
	t.answered++
	t.rcodes[r.rcode]++
	if r.outcome != s.want {
		t.wrong++
	}
}

func (t *tally) add(o *tally) {
	t.sent += o.sent
	t.answered += o.answered
	t.wrong += o.wrong
	t.lost += o.lost
	for i, n := range o.rcodes {
		t.rcodes[i] += n
	}
	t.waits = append(t.waits, o.waits...)
}

var rcodeNames = [16]string{0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}

// shares prints the rcodes in percent of the answers.
func (t *tally) shares() string {
	var parts []string
	for code, n := range t.rcodes {
		if n == 0 {
			continue
		}
		name := rcodeNames[code]
		if name == "" {
			name = fmt.Sprintf("RCODE%d", code)
		}
		parts = append(parts, fmt.Sprintf("%s %.1f%%", name, 100*float64(n)/float64(t.answered)))
	}
	return strings.Join(parts, " ")
}

// quantile returns the value below which the share q of v lies, 0 if v is empty. It sorts v.
func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

// median returns the middle of v, or the mean of the two in the middle; 0 if v is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
