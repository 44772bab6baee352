package zone

// rows is a table that only grows, in chunks: no row moves once the first chunk is full. The move of a table of
// millions of rows cannot be interrupted; when the collector wants all goroutines to stop meanwhile, queries wait for
// it.
type rows[T any] struct {
	chunks [][]T
	n      int
}

const (
	rowBits   = 14
	chunkRows = 1 << rowBits
)

// add puts a row at the end and returns its number.
func (r *rows[T]) add(row T) int32 {
	last := r.n >> rowBits
	switch {
	case last < len(r.chunks):
	case last == 0:
		r.chunks = append(r.chunks, nil) // a small zone needs little: this one grows
	default:
		r.chunks = append(r.chunks, make([]T, 0, chunkRows))
	}
	r.chunks[last] = append(r.chunks[last], row)
	r.n++
	return int32(r.n - 1)
}

// at is a row. It holds until the next add.
func (r *rows[T]) at(i int32) *T { return &r.chunks[i>>rowBits][i&(chunkRows-1)] }
