package plugin

// Attempted is an error of a query that was handed on to somebody else and failed there. *errors* tells what it says,
// if it is told to.
type Attempted interface {
	error
	// Attempt is what was tried last: the address of the upstream, the transport (udp, tcp, tls, https, https3,
	// quic), and how many attempts had failed then. Both are "" if none was made, as all upstreams are down.
	Attempt() (upstream, transport string, attempts int)
}

// DetailsTeller is a plugin that tells the details of errors. An upstream plugin makes its errors Attempted only if
// its block has one whose TellsDetails reports true: others see the errors as they are.
type DetailsTeller interface{ TellsDetails() bool }
