// Package bind sets the addresses that a server block listens on. It has no part in queries.
//
//	bind lo 192.0.2.1 { except ::1 } ──parse──▶ rule ──hosts──▶ 127.0.0.1 192.0.2.1 ──▶ Config.ListenHosts
//
// Start at setup.
package bind

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

const pluginName = "bind"

func init() { plugin.Register(pluginName, setup) }

// rule is one occurrence of the directive: what to listen on, and what of that not. Both are addresses or names of
// interfaces.
type rule struct {
	names, except []string
	family        family
}

// family says which addresses count.
type family uint8

const (
	both family = iota
	ipv4
	ipv6
)

func (f family) has(a netip.Addr) bool {
	return f == both || (f == ipv4) == a.Unmap().Is4()
}

var (
	errNoName   = errors.New("at least one address or interface name is expected")
	errNoExcept = errors.New("at least one address or interface must be given to except subdirective")
	errNothing  = errors.New("all addresses are excepted, there is nothing to listen on")
	errFamilies = errors.New("ipv4 and ipv6 exclude each other")
)

var directive = corefile.Define(&corefile.Directive[rule]{
	Name: pluginName,
	Args: corefile.Args[rule]{Syntax: "ADDRESS|IFACE...", Max: -1, Set: func(r *rule, l *corefile.Line) error {
		if r.names = l.Args; len(r.names) == 0 {
			return errNoName
		}
		return nil
	}},
	Unknown: `invalid option "%s"`,
	Options: corefile.Table[rule]{
		corefile.Row("except", "ADDRESS|IFACE...", "do not listen on these", 0, -1, func(r *rule, l *corefile.Line) error {
			if len(l.Args) == 0 {
				return errNoExcept
			}
			r.except = append(r.except, l.Args...)
			return nil
		}),
		familyOption("ipv4", ipv4),
		familyOption("ipv6", ipv6),
	},
})

func familyOption(name string, f family) corefile.Option[rule] {
	return corefile.Row(name, "", "listen on addresses of this family only", 0, 0, func(r *rule, _ *corefile.Line) error {
		if r.family != both && r.family != f {
			return errFamilies
		}
		r.family = f
		return nil
	})
}

func setup(c *caddy.Controller) error {
	rules, err := directive.ParseEach(c, rule{})
	if err != nil {
		return err
	}
	hosts, err := hosts(rules, interfaceAddrs)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	dnsserver.GetConfig(c).ListenHosts = hosts
	return nil
}

// hosts is the addresses of all rules, each once, as they are written in the Corefile or as the interface has them.
// lookup gives an interface's addresses, and those of all for "".
func hosts(rules []rule, lookup func(name string) ([]string, error)) (all []string, err error) {
	seen := map[netip.Addr]bool{}
	var bare []string // interfaces without an address
	for _, r := range rules {
		not := map[netip.Addr]bool{}
		excepted, err := expand(r.except, both, lookup)
		if err != nil {
			return nil, err
		}
		for _, h := range excepted {
			not[addrOf(h)] = true
		}
		listed, err := expand(r.names, r.family, lookup)
		if err != nil {
			return nil, err
		}
		if len(listed) == 0 {
			bare = append(bare, r.names...)
		}
		for _, h := range listed {
			// An exception without an interface is one on all of them.
			if a := addrOf(h); !not[a] && !not[a.WithZone("")] && !seen[a] && r.family.has(a) {
				seen[a] = true
				all = append(all, h)
			}
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(bare) > 0:
		return nil, fmt.Errorf("there is nothing to listen on: no address on %s", strings.Join(bare, ", "))
	default:
		return nil, errNothing
	}
}

// addrOf is a valid address; an IPv4 address that is mapped into IPv6 is listened on as itself.
func addrOf(text string) netip.Addr { return netip.MustParseAddr(text).Unmap() }

// expand is the addresses that names stand for; all are valid addresses. Of 0.0.0.0 and ::, where a socket takes what
// comes over either family, only the addresses that there are can be told apart by their family.
func expand(names []string, f family, lookup func(string) ([]string, error)) (out []string, err error) {
	for _, name := range names {
		a, err := netip.ParseAddr(name)
		switch {
		case err == nil && a.IsUnspecified() && f != both:
			name = "" // all interfaces
		case err == nil:
			out = append(out, name)
			continue
		case name == "": // of a variable of the environment that is not set, say
			return nil, notValid(name)
		}
		addrs, err := lookup(name)
		if err != nil {
			return nil, err
		}
		out = append(out, addrs...)
	}
	return out, nil
}

// notValid is the error of a name that stands for no address.
func notValid(name string) error {
	return fmt.Errorf("not a valid IP address or interface name: %q%s", name, remedy(name))
}

// remedy is what may have been meant by name, and which interfaces there are.
func remedy(name string) string {
	if host, port, err := net.SplitHostPort(name); err == nil && port != "" {
		if _, err := netip.ParseAddr(host); err == nil {
			return fmt.Sprintf(": did you mean %s? The port %s belongs to the key of the block: ZONE:%s", host, port, port)
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return corefile.Choice(name, names)
}

// interfaceAddrs is the addresses of an interface, and those of all for "".
func interfaceAddrs(name string) (out []string, err error) {
	if name != "" {
		iface, err := net.InterfaceByName(name)
		if err != nil {
			return nil, notValid(name)
		}
		return addrsOf(iface)
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	for i := range all {
		if all[i].Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := addrsOf(&all[i])
		if err != nil {
			return nil, err
		}
		out = append(out, addrs...)
	}
	return out, nil
}

// addrsOf is the addresses of an interface; link-local ones of IPv6 with the interface as their zone.
func addrsOf(iface *net.Interface) (out []string, err error) {
	addrs, err := iface.Addrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of interface %s: %w", iface.Name, err)
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue // no IP address
		}
		addr := p.Addr()
		if addr.Is6() && addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(iface.Name)
		}
		out = append(out, addr.String())
	}
	return out, nil
}
