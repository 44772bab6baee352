package wire

// Exchange is something that a query waits for without a goroutine: a question sent upstream, or another query's answer.
type Exchange interface {
	// Then calls r.Resume when the exchange has ended, once: at once if it has, else from the goroutine that ends it.
	Then(r Resumer)
}

// Resumer is who waits for an exchange.
type Resumer interface {
	// Resume must return soon: the goroutine that calls it has others to tell.
	Resume()
}

// Await says what q waits for, before Park is returned. It is what the run after it finds in Awaited.
func (q *Query) Await(x Exchange) { q.awaited = x }

// Awaited is the exchange that q was parked on and that has ended, nil on a first run. Before a plugin waits for
// another one, it calls Await again.
func (q *Query) Awaited() Exchange { return q.awaited }
