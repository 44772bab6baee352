package zonefile

import (
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

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
	err := p.Err()
	if err == nil && rr != nil {
		err = checkNames(rr)
	}
	if err != nil {
		return nil, err
	}
	return rr, nil
}

// checkNames looks for a name that is too long: the parser takes such by one or two octets, and a client could not read
// the message that it is in.
func checkNames(rr dns.RR) error {
	if dns.Len(rr) <= wire.MaxName {
		return nil
	}
	b := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err == nil {
		_, _, err = dns.UnpackRR(b[:n], 0)
	}
	return err
}
