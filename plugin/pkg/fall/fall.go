// Package fall decides whether a plugin that has no answer for a name passes the query on to the next plugin
// (the option fallthrough of many plugins), instead of answering that the name does not exist. Start at F.Through.
package fall

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/cidr"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// F is the list of zones below which queries are passed on. It is a plain value: its readers may be many as long
// as nobody changes it.
type F struct {
	// Zones are fully qualified names.
	Zones []string
}

var (
	// Root passes on every query.
	Root = F{Zones: []string{"."}}
	// Zero passes on none, as does every F without zones.
	Zero = F{}
)

// Through tells whether a query for qname is to be passed on: whether qname, fully qualified and in any case, is
// one of the zones or below one. It does not allocate.
func (f F) Through(qname string) bool {
	for _, zone := range f.Zones {
		if isAtOrBelow(qname, zone) {
			return true
		}
	}
	return false
}

// SetZonesFromArgs sets the zones from the arguments of the option: all names if there are none. Zones are written
// as in a server block: in any case, with or without the final dot, scheme and port, or as a network, for
// whose reverse zones it stands. What is no zone is left out.
func (f *F) SetZonesFromArgs(zones []string) {
	if len(zones) == 0 {
		f.Zones = slices.Clone(Root.Zones)
		return
	}
	f.Zones = nil
	for _, zone := range zones {
		f.Zones = append(f.Zones, normalize(zone)...)
	}
}

// Equal tells whether f and g have the same zones in the same order.
func (f *F) Equal(g F) bool { return slices.Equal(f.Zones, g.Zones) }

// normalize returns the zones for which one argument stands.
func normalize(arg string) []string {
	_, name := parse.Transport(arg)
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i]
		}
	}
	if _, n, err := net.ParseCIDR(name); err == nil {
		return cidr.Reverse(cidr.Split(n))
	}
	if _, ok := dns.IsDomainName(name); !ok || strings.ContainsRune(name, ':') { // a colon without a port behind it
		return nil
	}
	lower, err := wire.LowerName(name)
	if err != nil {
		return nil
	}
	return []string{wire.Text(lower)} // written as the names of queries are: not ä.org, but \195\164.org
}

// isAtOrBelow tells whether name is zone or below it. Both are fully qualified, or both are not.
func isAtOrBelow(name, zone string) bool {
	if zone == "." {
		return true
	}
	i := len(name) - len(zone)
	switch {
	case i < 0 || !strings.EqualFold(name[i:], zone):
		return false
	case i == 0:
		return true
	}
	return name[i-1] == '.' && !isEscaped(name, i-1)
}

// isEscaped tells whether an odd number of backslashes stands before name[i].
func isEscaped(name string, i int) bool {
	escaped := false
	for i > 0 && name[i-1] == '\\' {
		escaped = !escaped
		i--
	}
	return escaped
}
