package mirror

import (
	"strings"

	"github.com/miekg/dns"
)

// Record is the record that a line of a master file has, nil if it has none. What a provider says is no file of ours:
// with dns.NewRR a name of $INCLUDE would open one of this machine.
func Record(line string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(line+"\n"), ".", "")
	rr, _ := p.Next()
	return rr, p.Err()
}
