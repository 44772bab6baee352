package zonefile

import (
	"strings"

	"github.com/miekg/dns"
)

// defaultTTL is that of a line which tells none, in seconds.
const defaultTTL = 3600

// Line is the record that a line of a master file has (RFC 1035 §5.1), nil if it has none. It is for what others than
// who runs the server say, such as clients and the APIs of providers: with dns.NewRR a line that begins with $INCLUDE
// would open a file of this machine, and here it is an error.
func Line(text string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(text+"\n"), ".", "")
	p.SetDefaultTTL(defaultTTL)
	rr, _ := p.Next()
	return rr, p.Err()
}
