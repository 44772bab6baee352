package main

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// besides is a load that goes on beside the one that is measured. It is paced, and its answers are
// not counted; what it costs the server is.
type besides struct {
	rate    int
	signed  bool // the answers are, and are made before the load begins
	queries func(round, client int) source
}

// besideClients is how many sockets such a load has.
const besideClients = 8

// silentRate is queries a second at a server that never answers. Each waits for five seconds in a
// resolver, so ten thousand wait at once.
const silentRate = 2000

// floodRate is queries a second that are resolved and validated.
const floodRate = 2000

// recursion is the workloads of a resolver that asks the authority of a zone: misses, validated
// misses, and hits that have neither, one, or queries at a silent server beside them.
func recursion(s sizes) []workload {
	miss := fresh("recurse-miss", "recurse.corefile", 1, 1)
	miss.stub, miss.peers = missOrigin, []string{"coredns", "unbound"}
	validated := miss
	validated.name, validated.signed = "validate-miss", true
	validated.queries = func(*rand.Rand) func(round, client, clients int) source {
		return func(round, client, _ int) source { return newSecureNames(round, client) }
	}
	hit := validated
	hit.peers = ourselves
	hit.name, hit.warm, hit.probe = "recurse-hit", 2*s.hitNames, flatName(0)+"."+missOrigin
	hit.queries = listed(func(rnd *rand.Rand) *queryList { return warmQueries(missOrigin, s.hitNames, rnd) })
	flood, silence := hit, hit
	flood.name = "recurse-hit-flood"
	flood.beside = &besides{floodRate, true, func(round, client int) source { return newSecureNames(round, client) }}
	silence.name = "recurse-hit-silence"
	silence.beside = &besides{silentRate, false, func(round, client int) source {
		return newFreshNames(round, client, "silent."+missOrigin)
	}}
	return []workload{miss, validated, hit, flood, silence}
}

// start starts the servers behind those that are measured, and tells s of them.
func (b *bench) start(w *workload, s *settings) (*upstream, error) {
	answer := appendAnswer
	if s.Stub = w.stub; w.stub != "" {
		answer = appendAuthoritative
	}
	if w.signed {
		zone, err := newSignedZone(w.stub)
		if err != nil {
			return nil, err
		}
		s.Anchor, answer = zone.ds(), zone.appendAnswer
		if w.beside != nil && w.beside.signed {
			n := int(b.length.Seconds()*float64(w.beside.rate))/besideClients + 1
			for i := range b.rounds * besideClients {
				zone.prepare(w.beside.queries(i/besideClients, i%besideClients), n)
			}
		}
	}
	up, err := startUpstream(w.upstreams, answer)
	if err != nil {
		return nil, err
	}
	s.Upstream, s.Behind = up.port(), w.upstreams
	return up, nil
}

// run puts l on a server, and beside it what the workload has.
func (w *workload) run(l load, round int) (t tally, took time.Duration, err error) {
	if w.beside == nil {
		return l.run()
	}
	other := l
	other.rate, other.clients, other.window = w.beside.rate, besideClients, maxWindow
	other.queries = func(client int) source { return w.beside.queries(round, client) }
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { _, _, failed = other.run() })
	t, took, err = l.run()
	wg.Wait()
	return t, took, errors.Join(err, failed)
}
