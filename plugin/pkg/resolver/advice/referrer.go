package advice

import (
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Referrer refers clients that do not desire recursion to the servers of which a forwarder was told. Any number of
// goroutines may use it.
type Referrer interface {
	// Told looks for servers of zones in an upstream's reply, which does not change.
	Told(reply *rrset.Message)
	// Refer makes w a referral (RFC 1034 §4.3.1) for q, and reports whether there is one.
	Refer(w *wire.Reply, q *wire.Query) bool
}
