// Package memory tells how many bytes of memory the process may use, and how many files, and how many of what is
// limited by default that makes. It gives back what the program itself takes of it, see Settle, and has garbage
// collected less often where there is little, see WatchCollections.
//
//	debug.SetMemoryLimit ─┐
//	control groups       ─┴─ the least ──▶ Limit ──▶ Waiting, Connections, Unsent; and what plugins keep
//	RLIMIT_NOFILE ─▶ Files ──▶ Connections; and sockets to upstreams
//
// All functions may be called by any goroutine. Start at Limit.
package memory

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// Limit is the bytes of memory that the process may use: the least of what Go was told and what the control groups
// of the process allow; math.MaxInt64 if neither says. With addresses of 32 bits it is addressable at most.
func Limit() int64 { return min(debug.SetMemoryLimit(-1), groupLimit(), addressable(strconv.IntSize)) }

// addressable is how much can be used by addresses of so many bits: some systems keep half of them for themselves.
func addressable(bits int) int64 {
	if bits == 32 {
		return 2 << 30
	}
	return math.MaxInt64
}

// The queries that wait at one time, for an upstream or in a plugin that may wait: one for each PerWaiter bytes,
// within these bounds.
const (
	MinWaiting = 1024
	MaxWaiting = 65536
	PerWaiter  = 32 << 10
)

// Waiting is how many queries may wait at one time with so many bytes of memory.
func Waiting(limit int64) int { return int(min(MaxWaiting, max(MinWaiting, limit/PerWaiter))) }

// The open connections of one TCP or TLS listener: one for each PerConnection bytes, within these bounds, so that
// idle ones, which take some 20 KiB each, leave most of it to others. And at most one for FilesPerConnection files that
// the process may open: with none left, it could not read the Corefile, a zone or a health check.
const (
	MinConnections = 1024
	MaxConnections = 16384
	PerConnection  = 128 << 10

	FilesPerConnection = 4
)

// Connections is how many connections of TCP or TLS a listener takes with so many bytes of memory and so many files.
func Connections(limit int64, files int) int {
	return max(1, min(files/FilesPerConnection, int(min(MaxConnections, max(MinConnections, limit/PerConnection)))))
}

// The octets of replies that wait for all clients of the process: this part of the memory, within these bounds.
const (
	UnsentShare = 8
	MinUnsent   = 16 << 20
	MaxUnsent   = 1 << 30
)

// The streams of all connections, where memory has a limit: one for each PerStream bytes of this part of it. A query
// over HTTP/3 or gRPC takes some 12 KiB while it waits, twice as many until they are collected.
const (
	StreamsShare = 4
	PerStream    = 16 << 10
)

// Streams is how many streams of HTTP/3, QUIC or gRPC there may be with so many bytes of memory.
func Streams(limit int64) int { return int(min(math.MaxInt32, limit/StreamsShare/PerStream)) }

// Unsent is how many octets of replies may wait for clients with so many bytes of memory.
func Unsent(limit int64) int { return int(min(MaxUnsent, max(MinUnsent, limit/UnsentShare))) }

// groupLimit is the bytes of memory that the control groups of the process allow, math.MaxInt64 if they do not say.
var groupLimit = sync.OnceValue(func() int64 {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	return groupLimitOf("/sys/fs/cgroup", string(own))
})

// groupLimitOf is groupLimit for a process whose groups are told by own, in the form of /proc/self/cgroup, and lie
// below root. The limits of a group hold for those below it, too. In a container the process sees its own group as
// the root of all.
func groupLimitOf(root, own string) int64 {
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		folder, file := root, "memory.max"
		switch {
		case f[1] == "memory": // the first version of control groups
			folder, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		case f[1] != "":
			continue
		}
		for group := path.Clean("/" + f[2]); ; group = path.Dir(group) {
			limit = min(limit, readLimit(path.Join(folder, group, file)))
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// readLimit reads one limit; there is none if the file is not there or says "max".
func readLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n > noLimit {
		return math.MaxInt64
	}
	return n
}

// noLimit is more than any machine has; the first version of control groups says a number of that kind for no limit.
const noLimit = 1 << 60

// What the control groups allow is not for Go alone: the pages of the program that are in use count, and what the
// kernel keeps for sockets. Where these do not fit, the process does little but read its own program from the disk,
// and is not even ended. So Go gets all but one part of so many, but for othersAtLeast, and at least half.
const (
	othersShare   = 10
	othersAtLeast = 32 << 20
)

// Keep tells Go to stay that far below what the control groups allow, so that memory is collected before the system
// ends the process, unless somebody has told Go another limit.
var Keep = sync.OnceFunc(func() {
	if n, ok := toKeep(groupLimit(), debug.SetMemoryLimit(-1)); ok {
		debug.SetMemoryLimit(n)
	}
})

// toKeep is the limit that Go is told, if it is to be told one: group is what the control groups allow, told what
// Go knows.
func toKeep(group, told int64) (int64, bool) {
	others := min(max(group/othersShare, othersAtLeast), group/2)
	return group - others, group < math.MaxInt64 && told == math.MaxInt64
}
