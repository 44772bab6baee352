package parse

import (
	"github.com/coredns/caddy"

	"github.com/coredns/coredns/plugin/pkg/transport"
)

// TransferIn reads the rest of a line "transfer from ADDRESS...", of which c has read the first word, and returns
// the addresses of the primaries as HOST:PORT. c stands at the last argument then.
func TransferIn(c *caddy.Controller) (froms []string, err error) {
	args := c.RemainingArgs()
	if len(args) == 0 {
		return nil, c.ArgErr()
	}
	if args[0] != "from" {
		return nil, c.Errf("unknown property %s", args[0])
	}
	if len(args) == 1 {
		return nil, c.ArgErr()
	}
	for _, arg := range args[1:] {
		if arg == "*" {
			return nil, c.Err("can't use '*' in transfer from")
		}
		from, err := HostPort(arg, transport.Port)
		if err != nil {
			return nil, c.Err(err.Error())
		}
		froms = append(froms, from)
	}
	return froms, nil
}
