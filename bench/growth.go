package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// curve is how one figure grows with the size of something, for each server that can do it.
type curve struct {
	name, title string
	of, unit    string // what grows, and what is measured
	sizes       []int
	peers       []string
	corefile    string
	zones       bool // so many zones, of one record each; else one zone of so many records
	// figure is measured of a server that answers, which is of size n.
	figure func(b *bench, s *server, n int) (float64, error)
}

// curves is what is drawn.
func curves() []curve {
	return []curve{
		{
			name: "records-memory", title: "Memory of a zone", of: "records", unit: "MiB resident", sizes: []int{10_000, 100_000, 1_000_000, 5_000_000},
			peers: primaries, corefile: "auth.corefile", figure: mebibytes,
		},
		{
			name: "records-start", title: "Start to first answer with a zone", of: "records", unit: "CPU seconds", sizes: []int{10_000, 100_000, 1_000_000, 5_000_000},
			peers: primaries, corefile: "auth.corefile", figure: startCPU,
		},
		{
			name: "records-reread", title: "Time to answer while a zone is read again", of: "records", unit: "ms, p99 of the worst second",
			sizes: []int{10_000, 100_000, 1_000_000, 5_000_000}, peers: ourselves, corefile: "reread.corefile", figure: rereadP99,
		},
		{
			name: "zones-start", title: "Start to first answer with many zones", of: "zones", unit: "CPU seconds", sizes: []int{1, 100, 1000, 10_000, 100_000},
			peers: primaries, corefile: "zones.corefile", zones: true, figure: startCPU,
		},
		{
			name: "connections-memory", title: "Memory of idle TCP connections", of: "connections", unit: "KiB each", sizes: []int{10, 100, 1000, 10_000, 50_000},
			peers: ourselves, corefile: "auth.corefile", figure: idleConnections,
		},
		{
			name: "views-query", title: "A query with many views on one port", of: "views", unit: "CPU microseconds", sizes: []int{1, 10, 100, 1000},
			peers: ourselves, corefile: "views.corefile", figure: queryCPU,
		},
	}
}

// point is one figure of one server.
type point struct {
	size   int
	figure float64
}

// grow measures the curves and writes a picture and a table of each into dir.
func (b *bench) grow(ctx context.Context, chosen []curve, dir string, most int, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range chosen {
		lines := map[string][]point{}
		for _, n := range c.sizes {
			if n > most {
				break
			}
			for _, p := range b.programs {
				if !slices.Contains(c.peers, p.product) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				figure, err := b.point(c, p, n)
				if err != nil {
					fmt.Fprintf(out, "%s of %s at %d: %v\n", c.name, p.name, n, err) // its line ends there
					continue
				}
				fmt.Fprintf(out, "%s of %s at %d: %.4g %s\n", c.name, p.name, n, figure, c.unit)
				lines[p.name] = append(lines[p.name], point{n, figure})
			}
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+".svg"), []byte(draw(c, lines)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// point measures one server at one size.
func (b *bench) point(c curve, p program, n int) (figure float64, err error) {
	dir := filepath.Join(b.dir, fmt.Sprint(c.name, n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	s := settings{Threads: b.threads, Count: n, Origin: smallOrigin}
	w := workload{corefile: c.corefile, probe: flatName(0) + "." + smallOrigin}
	s.Zone = filepath.Join(dir, "zone")
	switch {
	case c.zones:
		w.probe = flatName(0) + "." + manyZone(n-1)
		if err := writeZones(dir, &s, n); err != nil {
			return 0, err
		}
	default:
		records := n
		if c.of != "records" {
			records = 1000
		}
		f, err := os.Create(s.Zone)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(flatZone(f, smallOrigin, records/2), f.Close()); err != nil {
			return 0, err
		}
	}
	srv, err := start(p, w, s, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	return c.figure(b, srv, n)
}

func manyZone(i int) string { return fmt.Sprintf("z%d.example.org", i) }

// writeZones writes n zone files, named as the plugin auto looks for them.
func writeZones(dir string, s *settings, n int) error {
	s.Zone = filepath.Join(dir, "zones")
	if err := os.Mkdir(s.Zone, 0o755); err != nil {
		return err
	}
	for i := range n {
		s.Zones = append(s.Zones, manyZone(i))
		text := fmt.Sprintf(apex, manyZone(i)) + flatName(0) + " A 192.0.2.1\n"
		if err := os.WriteFile(filepath.Join(s.Zone, "db."+manyZone(i)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// settle is how long a server is left alone before its memory is read: some give memory back late.
const settle = 2 * time.Second

func mebibytes(_ *bench, s *server, _ int) (float64, error) {
	time.Sleep(settle)
	n, err := memory(s.cmd.Process.Pid)
	return float64(n) / (1 << 20), err
}

func startCPU(_ *bench, s *server, _ int) (float64, error) { return cpuSeconds(s.cmd.Process.Pid) }

// idleConnections opens n connections, has each asked once, and reads how much memory they take, beyond what a few
// before them have had the server look at of its program.
func idleConnections(_ *bench, s *server, n int) (float64, error) {
	const few = 10
	early, err := askedConnections(s.port, few)
	closeAll(early)
	if err != nil {
		return 0, err
	}
	time.Sleep(settle)
	before, err := memory(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	idle, err := askedConnections(s.port, n)
	defer closeAll(idle)
	if err != nil {
		return 0, err
	}
	time.Sleep(settle)
	after, err := memory(s.cmd.Process.Pid)
	return max(0, float64(after-before)) / 1024 / float64(n), err
}

// askedConnections opens n connections to a port of loopback and asks one question over each. Those that were opened
// are returned with an error, too.
func askedConnections(port, n int) (all []io.Closer, err error) {
	query := appendQuery(nil, flatName(0)+"."+smallOrigin, typeA)
	frame := append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	for i := range n {
		// Addresses of loopback of their own: one has ports for some 28,000 connections only.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%50))}}
		c, err := d.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return all, err
		}
		all = append(all, c)
		if _, err := c.Write(frame); err != nil {
			return all, err
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			return all, fmt.Errorf("connection %d: %w", i, err)
		}
	}
	return all, nil
}

func closeAll(all []io.Closer) {
	for _, c := range all {
		c.Close()
	}
}

// queryCPU is what a query takes, asked one after the other.
func queryCPU(_ *bench, s *server, _ int) (float64, error) {
	const queries = 30_000
	before, err := cpuSeconds(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	conn, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	query, buf := appendQuery(nil, flatName(0)+"."+smallOrigin, typeA), make([]byte, packetLen)
	for range queries {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write(query); err != nil {
			return 0, err
		}
		if _, err := conn.Read(buf); err != nil {
			return 0, err
		}
	}
	after, err := cpuSeconds(s.cmd.Process.Pid)
	return (after - before) / queries * 1e6, err
}
