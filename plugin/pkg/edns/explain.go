package edns

// Explainer is an error of a plugin that tells the client why its query failed, by an extended error (RFC 8914) in the
// error reply that the server makes of it. Clients without EDNS are not told.
type Explainer interface {
	error
	// ExtendedError is the option's info code and its extra text.
	ExtendedError() (code uint16, text string)
}
