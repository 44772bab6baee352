package forward

import (
	"net"
	"time"

	"github.com/miekg/dns"
)

// tap is told each attempt, after it.
type tap interface {
	tapAttempt(r *dns.Msg, a *attempt)
}

// attempt is one query to one upstream.
type attempt struct {
	began    time.Time // when the client's query came to forward
	ended    time.Time
	own      net.Addr // where the query was sent from; nil if it was not
	upstream string   // HOST:PORT
	proto    string   // what was really used: "udp" or "tcp"
	query    []byte   // as sent, with the client's id
	reply    []byte   // as it came, with the client's id; nil if none came
}
