package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// resolver finds the addresses of a name.
type resolver interface {
	// lookup returns all addresses of host, at least one, and how long they are good.
	lookup(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
}

// systemResolver asks as the system is configured. That does not tell TTLs.
type systemResolver struct{}

const systemTTL = time.Minute

func (systemResolver) lookup(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, systemTTL, err
}

// serverResolver asks given servers, HOST:PORT, one after the other.
type serverResolver []string

func (servers serverResolver) lookup(ctx context.Context, host string) (addrs []netip.Addr, ttl time.Duration, err error) {
	for _, server := range servers {
		addrs, ttl, err = lookupAt(ctx, server, host)
		if len(addrs) > 0 {
			return addrs, ttl, nil
		}
	}
	return nil, 0, err
}

// lookupAt asks one server for both kinds of addresses. The error is of use only without any address.
func lookupAt(ctx context.Context, server, host string) (addrs []netip.Addr, ttl time.Duration, err error) {
	p := proxy.NewProxy(pluginName+"_resolver", server, transport.DNS)
	defer p.Stop()
	ttl = maxRefresh
	var errs []error
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
		m, err := exchange(ctx, p, new(dns.Msg).SetQuestion(dns.Fqdn(host), typ))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, rr := range m.Answer {
			var ip net.IP
			switch rr := rr.(type) {
			case *dns.A:
				ip = rr.A
			case *dns.AAAA:
				ip = rr.AAAA
			}
			ttl = min(ttl, time.Duration(rr.Header().Ttl)*time.Second)
			if a, ok := netip.AddrFromSlice(ip); ok && !slices.Contains(addrs, a.Unmap()) {
				addrs = append(addrs, a.Unmap())
			}
		}
		if m.Rcode != dns.RcodeSuccess {
			errs = append(errs, fmt.Errorf("%s: %s", server, dns.RcodeToString[m.Rcode]))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: no addresses", server))
	}
	return addrs, ttl, errors.Join(errs...)
}

// exchange asks over UDP, and over TCP if that is too small.
func exchange(ctx context.Context, p *proxy.Proxy, q *dns.Msg) (*dns.Msg, error) {
	m, _, _, err := p.Connect(ctx, request.Request{Req: q}, proxy.Options{PreferUDP: true})
	if err == nil && m.Truncated {
		m, _, _, err = p.Connect(ctx, request.Request{Req: q}, proxy.Options{ForceTCP: true})
	}
	return m, err
}
