// Command bench measures whole servers side by side on loopback: the program of this
// module, other builds of it, and other servers that are installed.
//
//	workload ──▶ zone file, configuration ──▶ server (a process, ended by its pid) ──▶ upstream
//	    └──────▶ queries from a seed ──▶ load (clients, windows) ──UDP, TCP──┘         (in here)
//	                                       └──▶ tally ──▶ table
//
// The figure to steer by is the CPU time that a server spends on a million answers; the
// load shares the machine with the servers, so queries a second say less. Start reading
// at rounds.go; workload.go lists what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run does what the command line args say and prints to out.
func run(ctx context.Context, args []string, out io.Writer) error {
	b := bench{sizes: fullSizes, threads: runtime.NumCPU()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	binary := flags.String("server", "./coredns", "the `program` to measure")
	peers := flags.String("peers", "", "what to compare with: names of knotd, nsd, unbound, dnsdist, or NAME=PATH of other builds")
	names := flags.String("workloads", "all", "which workloads, separated by space or comma")
	seconds := flags.Float64("seconds", 4, "length of a round")
	flags.IntVar(&b.rounds, "rounds", 5, "rounds of each server, in turns")
	flags.IntVar(&b.rate, "rate", 0, "queries a second; 0 is as fast as answers come")
	flags.IntVar(&b.clients, "clients", 8, "sockets or connections of the load")
	flags.IntVar(&b.window, "window", 32, "queries that each client keeps in flight")
	flags.Uint64Var(&b.seed, "seed", 20261121, "of the queries")
	growth := flags.String("growth", "", "draw how costs grow, as pictures in this `folder`, in place of the workloads")
	pictures := flags.String("curves", "all", "names of the pictures of -growth")
	most := flags.Int("most", 1_000_000, "the largest size of -growth")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.length = time.Duration(*seconds * float64(time.Second))
	if b.rounds < 1 || b.length <= 0 || b.clients < 1 || b.rate < 0 || b.window < 1 || b.window > maxWindow {
		return fmt.Errorf("rounds, seconds, clients and window are at least 1, the window at most %d, the rate not below 0", maxWindow)
	}
	todo, err := selectWorkloads(*names, workloads(b.sizes))
	if err != nil {
		return err
	}
	if b.programs, err = findPrograms(*binary, *peers, out); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if *growth != "" {
		chosen, err := selectCurves(*pictures, curves())
		if err != nil {
			return err
		}
		return b.grow(ctx, chosen, *growth, *most, out)
	}
	for _, w := range todo {
		rows, err := b.measure(ctx, w)
		if err != nil {
			return err
		}
		if err := writeTable(out, b.title(w), rows, b.rate > 0); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) title(w workload) string {
	s := fmt.Sprintf("%s: %d rounds of %v, %d clients, window %d", w.name, b.rounds, b.length, b.clients, b.window)
	if b.rate > 0 {
		s += fmt.Sprintf(", %d queries a second", b.rate)
	}
	return s
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
}

func selectWorkloads(names string, all []workload) ([]workload, error) {
	return named("workload", names, all, func(w workload) string { return w.name })
}

// selectCurves does the same for pictures.
func selectCurves(names string, all []curve) ([]curve, error) {
	return named("curve", names, all, func(c curve) string { return c.name })
}

// named is those of a kind that a list of names has, in its order.
func named[T any](kind, names string, all []T, nameOf func(T) string) (found []T, err error) {
	if names == "all" {
		return all, nil
	}
	for _, name := range list(names) {
		i := slices.IndexFunc(all, func(v T) bool { return nameOf(v) == name })
		if i < 0 {
			known := make([]string, len(all))
			for i, v := range all {
				known[i] = nameOf(v)
			}
			return nil, fmt.Errorf("no %s %q; there are %s", kind, name, strings.Join(known, ", "))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// findPrograms returns the binary and those of peers that are installed. Of the others
// it prints a line.
func findPrograms(binary, peers string, out io.Writer) ([]program, error) {
	path, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("server to measure: %w (make build)", err)
	}
	found := []program{{"coredns", "coredns", path}}
	for _, name := range list(peers) {
		name, path, given := strings.Cut(name, "=")
		p := program{name, name, path}
		if _, known := products[name]; given && !known {
			p.product = "coredns"
		} else if !known {
			return nil, fmt.Errorf("peer %q is not known; another build is given as NAME=PATH", name)
		}
		if slices.ContainsFunc(found, func(o program) bool { return o.name == name }) {
			return nil, fmt.Errorf("two servers are called %q", name)
		}
		if !given {
			path = name
		}
		if p.path, err = lookup(path); err != nil {
			fmt.Fprintf(out, "%s is left out: %v\n", name, err)
			continue
		}
		found = append(found, p)
	}
	for i := range found { // servers run in folders of their own
		if found[i].path, err = filepath.Abs(found[i].path); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// lookup finds an executable, also where servers are installed.
func lookup(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !strings.Contains(name, "/") {
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return path, err
}
