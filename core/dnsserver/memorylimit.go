package dnsserver

// MemoryLimit is the bytes of memory that the process may use: the least of what Go was told and what the control groups of the process
// allow; math.MaxInt64 if neither says. Plugins take what they keep by default as a share of it.
func MemoryLimit() int64 { return memoryLimit() }
