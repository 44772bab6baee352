package plugin

// Attempted is an error of a query that was handed on to somebody else and failed there. *errors* tells what it says,
// if it is told to. WithAttempt makes one.
type Attempted interface {
	error
	// Attempt is what was tried last: the address of the upstream, the transport (udp, tcp, tls, https, https3,
	// quic, grpc), and how many attempts had failed then. Both are "" if none was made, as all upstreams are down.
	Attempt() (upstream, transport string, attempts int)
}

// DetailsTeller is a plugin that tells the details of errors. An upstream plugin makes its errors Attempted only if
// its block has one whose TellsDetails reports true: others see the errors as they are.
type DetailsTeller interface{ TellsDetails() bool }

// TellsDetails reports whether h, the *errors* of a block or nil, tells the details of errors.
func TellsDetails(h Handler) bool {
	t, ok := h.(DetailsTeller)
	return ok && t.TellsDetails()
}

// WithAttempt is err with what was tried last; see Attempted for the arguments. It wraps err, whose text it has.
func WithAttempt(err error, upstream, transport string, attempts int) Attempted {
	return &attempted{err, upstream, transport, attempts}
}

type attempted struct {
	error
	upstream, transport string
	attempts            int
}

// Unwrap is the error itself.
func (e *attempted) Unwrap() error { return e.error }

// Attempt implements Attempted.
func (e *attempted) Attempt() (upstream, transport string, attempts int) {
	return e.upstream, e.transport, e.attempts
}
