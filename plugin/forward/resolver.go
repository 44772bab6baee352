package forward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// resolver finds the addresses of a name.
type resolver interface {
	// lookup returns the addresses of host, at least one.
	lookup(ctx context.Context, host string) (found, error)
}

// found is the addresses of a name.
type found struct {
	addrs    []netip.Addr
	ttl      time.Duration // how long they are good
	no4, no6 bool          // it could not be found out whether there are IPv4, or IPv6, addresses
}

// lacks reports whether f does not tell if p is still an upstream.
func (f *found) lacks(p *proxy.Proxy) bool {
	at, err := netip.ParseAddrPort(p.Addr())
	return err == nil && (at.Addr().Is4() && f.no4 || at.Addr().Is6() && f.no6)
}

// systemResolver asks as the system is configured. That does not tell TTLs.
type systemResolver struct{}

const systemTTL = time.Minute

func (systemResolver) lookup(ctx context.Context, host string) (found, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return found{addrs: addrs, ttl: systemTTL}, err
}

// serverResolver asks given servers, HOST:PORT, one after the other, and all once more if none knew: a datagram may be lost.
type serverResolver []string

const (
	rounds     = 2
	serverTime = 2 * time.Second // for each server, less if there are many
)

// lookup is what the first server has found that knows of both kinds of addresses, or else the most that one has found.
func (servers serverResolver) lookup(ctx context.Context, host string) (most found, err error) {
	each := min(serverTime, resolveTimeout/time.Duration(rounds*len(servers)))
	for unsure, round := true, 0; unsure && round < rounds && ctx.Err() == nil; round++ {
		unsure = false
		for _, server := range servers {
			var f found
			f, err = lookupAt(ctx, each, server, host)
			if len(f.addrs) > len(most.addrs) {
				most = f
			}
			if len(f.addrs) > 0 && !f.no4 && !f.no6 {
				return f, nil
			}
			unsure = unsure || f.no4 || f.no6
		}
		if len(most.addrs) > 0 {
			return most, nil
		}
	}
	return most, err
}

// lookupAt asks one server for both kinds of addresses at a time. The error is of use only without any address. What is found of
// one kind alone, as the other failed, is good for no time.
func lookupAt(ctx context.Context, each time.Duration, server, host string) (f found, err error) {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	p := proxy.NewProxy(pluginName+"_resolver", server, transport.DNS)
	defer p.Stop()
	f.ttl = maxRefresh
	kinds := [...]struct {
		typ     uint16
		unknown *bool
		m       *dns.Msg
		err     error
	}{{typ: dns.TypeA, unknown: &f.no4}, {typ: dns.TypeAAAA, unknown: &f.no6}}
	var both sync.WaitGroup
	for i := range kinds {
		k := &kinds[i]
		both.Go(func() { k.m, k.err = exchange(ctx, p, new(dns.Msg).SetQuestion(dns.Fqdn(host), k.typ)) })
	}
	both.Wait()
	var errs []error
	for _, k := range kinds {
		switch {
		case k.err != nil:
			*k.unknown = true
			errs = append(errs, k.err)
		case k.m.Rcode != dns.RcodeSuccess:
			*k.unknown = k.m.Rcode != dns.RcodeNameError
			errs = append(errs, fmt.Errorf("%s: %s", server, dns.RcodeToString[k.m.Rcode]))
		default:
			f.take(k.m.Answer)
		}
	}
	if f.no4 || f.no6 {
		f.ttl = 0
	}
	switch len(errs) {
	case 0:
		return f, fmt.Errorf("%s: no addresses", server)
	case 1:
		return f, errs[0]
	}
	return f, fmt.Errorf("%w; %w", errs[0], errs[1]) // in one line, unlike errors.Join
}

// take adds the addresses of an answer.
func (f *found) take(answer []dns.RR) {
	for _, rr := range answer {
		var ip net.IP
		switch rr := rr.(type) {
		case *dns.A:
			ip = rr.A
		case *dns.AAAA:
			ip = rr.AAAA
		}
		f.ttl = min(f.ttl, time.Duration(rr.Header().Ttl)*time.Second)
		if a, ok := netip.AddrFromSlice(ip); ok && !slices.Contains(f.addrs, a.Unmap()) {
			f.addrs = append(f.addrs, a.Unmap())
		}
	}
}

// exchange asks over UDP, and over TCP if that is too small.
func exchange(ctx context.Context, p *proxy.Proxy, q *dns.Msg) (*dns.Msg, error) {
	m, _, _, err := p.Connect(ctx, request.Request{Req: q}, proxy.Options{PreferUDP: true})
	if err == nil && m.Truncated {
		m, _, _, err = p.Connect(ctx, request.Request{Req: q}, proxy.Options{ForceTCP: true})
	}
	return m, err
}
