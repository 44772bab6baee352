package dnsserver

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// waiting runs the queries that may wait, of all servers of the process.
var waiting = sync.OnceValue(func() *workers { return newWorkers(waitingLimit(memoryLimit())) })

// waitingLimit is how many queries may wait at one time with so many bytes of memory.
func waitingLimit(memory int64) int {
	return int(min(MaxWaiting, max(MinWaiting, memory/MemoryPerWaiter)))
}

// memoryLimit is the bytes of memory that the process may use: the least of what Go was told and
// what its control group allows.
func memoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit
}
