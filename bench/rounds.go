package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench runs workloads against programs.
type bench struct {
	programs []program // the first is the one that it is about
	sizes    sizes
	seed     uint64
	rounds   int
	length   time.Duration
	rate     int
	clients  int
	window   int
	threads  int
	dir      string // for data, configurations and output
}

// row is what was measured of one server.
type row struct {
	name   string
	ready  time.Duration
	memory int // resident bytes behind the last round
	rounds []measure
}

// measure is one round.
type measure struct {
	tally tally
	took  time.Duration
	cpu   float64 // seconds of the server
}

// perMillion returns the CPU seconds of a million answers.
func (m measure) perMillion() float64 { return m.cpu / float64(max(1, m.tally.answered)) * 1e6 }

func (m measure) qps() float64 { return float64(m.tally.answered) / m.took.Seconds() }

// measure starts every program that can do w, puts the load on them in turns and stops
// them. It ends early when ctx does.
func (b *bench) measure(ctx context.Context, w workload) (rows []row, err error) {
	s := settings{Origin: w.origin, Log: w.log, Threads: b.threads}
	dir := filepath.Join(b.dir, w.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if w.zone != nil {
		if s.Zone, err = writeZone(dir, w); err != nil {
			return nil, err
		}
		defer os.Remove(s.Zone) // the temporary folder may be memory
	}
	if w.upstreams > 0 {
		up, err := b.start(&w, &s)
		if err != nil {
			return nil, err
		}
		defer up.stop()
	}
	var servers []*server
	defer func() {
		for _, srv := range servers {
			err = errors.Join(err, srv.stop())
		}
	}()
	for _, p := range b.programs {
		if !slices.Contains(w.peers, p.product) {
			continue
		}
		srv, err := start(p, w, s, dir)
		if err != nil {
			return nil, err
		}
		servers = append(servers, srv)
	}
	return b.compare(ctx, w, servers)
}

// compare puts the load on the servers round by round, so that all see the same noise.
func (b *bench) compare(ctx context.Context, w workload, servers []*server) ([]row, error) {
	sources := w.queries(rand.New(rand.NewPCG(b.seed, 1)))
	rows := make([]row, len(servers))
	for i, srv := range servers {
		rows[i] = row{name: srv.name, ready: srv.ready}
		if err := b.warm(w, srv, sources); err != nil {
			return nil, err
		}
	}
	for round := range b.rounds {
		for i, srv := range servers {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s, before round %d of %s: %w", w.name, round+1, srv.name, ctx.Err())
			}
			m, err := b.round(w, srv, b.load(w, srv, round, sources), round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d of %s: %w", w.name, round+1, srv.name, err)
			}
			rows[i].rounds = append(rows[i].rounds, m)
		}
	}
	for i, srv := range servers {
		var err error
		if rows[i].memory, err = memory(srv.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func writeZone(dir string, w workload) (string, error) {
	path := filepath.Join(dir, "zone")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(w.zone(f), f.Close())
}

func (b *bench) load(w workload, srv *server, round int, sources func(round, client, clients int) source) load {
	return load{
		port: srv.port, tcp: w.tcp, clients: b.clients, window: b.window, rate: b.rate, length: b.length,
		queries: func(client int) source { return sources(round, client, b.clients) },
	}
}

// warm fills the caches of srv, as fast as it can.
func (b *bench) warm(w workload, srv *server, sources func(round, client, clients int) source) error {
	if w.warm == 0 {
		return nil
	}
	l := b.load(w, srv, 0, sources)
	l.rate, l.length, l.limit = 0, time.Minute, w.warm/b.clients+1
	_, _, err := l.run()
	return err
}

// round runs one load and measures what it cost the server.
func (b *bench) round(w workload, srv *server, l load, round int) (measure, error) {
	if !srv.running() {
		return measure{}, errors.New("the process has ended")
	}
	pid := srv.cmd.Process.Pid
	before, err := cpuSeconds(pid)
	if err != nil {
		return measure{}, err
	}
	t, took, err := w.run(l, round)
	if err != nil {
		return measure{}, err
	}
	after, err := cpuSeconds(pid)
	if err != nil {
		return measure{}, err
	}
	if w.log { // millions of lines would fill the disk
		if err := os.Truncate(srv.output, 0); err != nil {
			return measure{}, err
		}
	}
	return measure{tally: t, took: took, cpu: after - before}, nil
}
