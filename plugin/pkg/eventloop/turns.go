package eventloop

// Turns counts small pieces of a long work, and yields once in so many: others who serve have their turn some thousand
// times a second, and the work takes two parts in a hundred longer. The zero Turns is ready; it is for one goroutine.
type Turns uint32

// perTurn is pieces of work of half a microsecond or so: what is done to a record, or a name.
const perTurn = 512

// Done notes that a piece is done.
func (t *Turns) Done() {
	if *t++; *t%perTurn == 0 {
		Yield()
	}
}
