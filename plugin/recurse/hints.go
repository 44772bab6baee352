package recurse

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// builtin is the root's servers (https://www.iana.org/domains/root/servers): letter, IPv4, IPv6.
const builtin = `
a 198.41.0.4     2001:503:ba3e::2:30
b 170.247.170.2  2801:1b8:10::b
c 192.33.4.12    2001:500:2::c
d 199.7.91.13    2001:500:2d::d
e 192.203.230.10 2001:500:a8::e
f 192.5.5.241    2001:500:2f::f
g 192.112.36.4   2001:500:12::d0d
h 198.97.190.53  2001:500:1::53
i 192.36.148.17  2001:7fe::53
j 192.58.128.30  2001:503:c27::2:30
k 193.0.14.129   2001:7fd::1
l 199.7.83.42    2001:500:9f::42
m 202.12.27.33   2001:dc3::35`

// builtinHints is the delegation of the root that is known without asking anybody.
func builtinHints() *store.Delegation {
	d := &store.Delegation{Zone: rrset.Root, Fixed: true}
	for line := range strings.Lines(strings.TrimSpace(builtin)) {
		f := strings.Fields(line)
		h := store.Host{Name: rrset.MustName(f[0] + ".root-servers.net.")}
		for _, a := range f[1:] {
			h.Addrs = append(h.Addrs, netip.MustParseAddr(a))
		}
		d.Hosts = append(d.Hosts, h)
	}
	return d
}

func setHints(s *settings, l *corefile.Line) (err error) {
	s.hints, err = readHints(corefile.Below(dnsserver.GetConfig(l.Controller()).Root, l.Args[0]))
	return err
}

// readHints reads a master file with NS records of the root and addresses of these names.
func readHints(file string) (*store.Delegation, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &store.Delegation{Zone: rrset.Root, Fixed: true}
	at, addrs := map[string]int{}, map[string][]netip.Addr{}
	z := dns.NewZoneParser(zonefile.Unmarked(f), ".", file)
	for rr, ok := z.Next(); ok; rr, ok = z.Next() {
		owner, err := rrset.Name(rr.Header().Name)
		if err != nil {
			return nil, fmt.Errorf("hints file %q: %w", file, err)
		}
		switch rr := rr.(type) {
		case *dns.NS:
			name, err := rrset.Name(rr.Ns)
			if _, twice := at[name]; owner == rrset.Root && err == nil && !twice {
				at[name] = len(d.Hosts)
				d.Hosts = append(d.Hosts, store.Host{Name: name})
			}
		case *dns.A:
			a, _ := netip.AddrFromSlice(rr.A.To4())
			addrs[owner] = append(addrs[owner], a)
		case *dns.AAAA:
			a, _ := netip.AddrFromSlice(rr.AAAA.To16())
			addrs[owner] = append(addrs[owner], a)
		}
	}
	if err := z.Err(); err != nil {
		return nil, fmt.Errorf("hints file %q: %w", file, err)
	}
	known := 0
	for name, i := range at {
		d.Hosts[i].Addrs = addrs[name]
		known += len(addrs[name])
	}
	if known == 0 {
		return nil, fmt.Errorf("hints file %q has no root server", file)
	}
	return d, nil
}

func setStub(s *settings, l *corefile.Line) error {
	zones, err := names(l.Args[:1])
	if err != nil {
		return err
	}
	name := zones[0]
	if s.stubs[name] != nil {
		return fmt.Errorf("stub zone %q is defined twice", l.Args[0])
	}
	d := &store.Delegation{Zone: name, Fixed: true}
	for _, a := range l.Args[1:] {
		h := store.Host{}
		if ip, err := netip.ParseAddr(a); err == nil {
			h.Addrs = []netip.Addr{ip.Unmap()}
		} else {
			hp, err := parse.HostPort(a, "53")
			if err != nil {
				return fmt.Errorf("stub zone %q: %q is not an IP address, with or without a port", l.Args[0], a)
			}
			ap, err := netip.ParseAddrPort(hp)
			if err != nil || ap.Port() == 0 {
				return fmt.Errorf("stub zone %q: %q is not an IP address, with or without a port", l.Args[0], a)
			}
			h.Addrs, h.Port = []netip.Addr{ap.Addr().Unmap()}, ap.Port()
		}
		d.Hosts = append(d.Hosts, h)
	}
	s.stubs[name] = d
	return nil
}
