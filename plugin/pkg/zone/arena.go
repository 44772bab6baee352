package zone

// arena is memory that only grows, in chunks. A place in it is a chunk's number and an
// offset; place 0 is never given out.
type arena struct {
	chunks [][]byte
	full   bool // something had no place any more
}

const (
	chunkBits = 22
	chunkSize = 1 << chunkBits
	maxChunks = 1 << (32 - chunkBits) // 4 GiB in all
)

// add puts b into the arena and returns its place. b is at most chunkSize-1 octets.
func (a *arena) add(b []byte) uint32 {
	n := len(a.chunks) - 1
	if n < 0 || len(a.chunks[n])+len(b) > cap(a.chunks[n]) {
		if len(a.chunks) == maxChunks {
			a.full = true
			return 0
		}
		size := min(chunkSize, 1024<<min(2*len(a.chunks), 20)) // a small zone needs little
		c := make([]byte, 0, max(size, len(b)+1))
		if n < 0 {
			c = append(c, 0)
		}
		a.chunks = append(a.chunks, c)
		n++
	}
	at := len(a.chunks[n])
	a.chunks[n] = append(a.chunks[n], b...)
	return uint32(n)<<chunkBits | uint32(at)
}

// at is what begins at a place, and what was added behind it in the same chunk.
func (a *arena) at(place uint32) []byte { return a.chunks[place>>chunkBits][place&(chunkSize-1):] }

// clip gives back what the last chunk does not need.
func (a *arena) clip() {
	if n := len(a.chunks) - 1; n >= 0 && cap(a.chunks[n]) > len(a.chunks[n])+len(a.chunks[n])/8 {
		a.chunks[n] = append(make([]byte, 0, len(a.chunks[n])), a.chunks[n]...)
	}
}
