package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of times in /proc (USER_HZ; 100 on every Linux).
const ticksPerSecond = 100

// procStat is what one line of /proc/PID/stat tells.
type procStat struct {
	pid, parent int
	cpu         float64 // seconds, user and system, without children
}

// parseStat reads such a line. The command in parentheses may hold anything.
func parseStat(line string) (procStat, error) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return procStat{}, errors.New("no command in parentheses")
	}
	f := strings.Fields(line[end+1:])
	if len(f) < 13 {
		return procStat{}, fmt.Errorf("%d fields behind the command", len(f))
	}
	var v [4]int
	for i, s := range []string{strings.TrimSpace(line[:open]), f[1], f[11], f[12]} {
		n, err := strconv.Atoi(s)
		if err != nil {
			return procStat{}, err
		}
		v[i] = n
	}
	return procStat{pid: v[0], parent: v[1], cpu: float64(v[2]+v[3]) / ticksPerSecond}, nil
}

// family returns the process pid and all that descend from it.
func family(pid int) ([]procStat, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(paths) == 0 {
		return nil, errors.New("no processes in /proc, which CPU time and memory are read from")
	}
	children := map[int][]procStat{}
	var found []procStat
	for _, path := range paths {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // ended since
		}
		s, err := parseStat(string(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if s.pid == pid {
			found = append(found, s)
		}
		children[s.parent] = append(children[s.parent], s)
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found, nil
}

// cpuSeconds returns the CPU time of a family so far.
func cpuSeconds(pid int) (float64, error) {
	all, err := family(pid)
	sum := 0.0
	for _, s := range all {
		sum += s.cpu
	}
	return sum, err
}

// memory returns the resident bytes of a family. Pages that processes share count once.
func memory(pid int) (int, error) {
	all, err := family(pid)
	if err != nil {
		return 0, err
	}
	file, key := "smaps_rollup", "Pss:"
	if len(all) == 1 {
		file, key = "status", "VmRSS:"
	}
	sum := 0
	for _, s := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.pid, file))
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", s.pid, err)
		}
		sum += kibibytes(text, key) << 10
	}
	return sum, nil
}

// kibibytes returns the number behind key at the start of a line, 0 if there is none.
func kibibytes(text []byte, key string) int {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			if f := bytes.Fields(rest); len(f) > 0 {
				n, _ := strconv.Atoi(string(f[0]))
				return n
			}
		}
	}
	return 0
}
