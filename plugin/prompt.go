package plugin

// Prompt is a Handler that knows of its own ServeDNS that it never waits, apart from what it asks of the next
// plugin; that it writes one reply at most, before it returns; and that it keeps neither the writer nor the
// message, nor addresses got from them, after that. If all the plugins behind it say so, too, the server calls it
// on the goroutine that reads queries, with memory that is used again, which costs much less.
//
// It is for handlers that know no bytes; a WireHandler says Prompt so that those above it can.
type Prompt interface {
	Handler
	// Prompt reports whether that holds now. It is asked with each query.
	Prompt() bool
}
