package cache

// Parameters of FNV for 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// Hash returns the FNV-1 hash of what. It has no seed: who can choose what is hashed can make hashes collide.
func Hash(what []byte) uint64 {
	h := uint64(fnvOffset)
	for _, b := range what {
		h *= fnvPrime
		h ^= uint64(b)
	}
	return h
}
