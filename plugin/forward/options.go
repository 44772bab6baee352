package forward

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/policy"
	"github.com/coredns/coredns/plugin/pkg/tls"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/within"

	"github.com/miekg/dns"
)

// This file reads the arguments of the directive and its options.

func setArgs(s *settings, l *corefile.Line) (err error) {
	if s.zones.From, err = zone(l.Args[0]); err != nil {
		return err
	}
	s.targets, err = parseTargets(l.Args[1:])
	return err
}

// zone is the lower-case name of one zone, or of the first one of a network.
func zone(text string) ([]byte, error) {
	zones := plugin.Host(text).NormalizeExact()
	if len(zones) > 1 {
		logger.Warningf("Unsupported CIDR notation: '%s' expands to multiple zones. Using only '%s'.", text, zones[0])
	}
	return within.Zone(text, zones)
}

func setExcept(s *settings, l *corefile.Line) error {
	for _, a := range l.Args {
		name, err := zone(a)
		if err != nil {
			return err
		}
		s.zones.Except(name)
	}
	return nil
}

// duration is an option with a duration that is not negative.
func duration(name, help string, of func(*settings) *time.Duration) corefile.Option[settings] {
	return corefile.Row(name, "DURATION", help, 1, 1, func(s *settings, l *corefile.Line) error {
		d, err := time.ParseDuration(l.Args[0])
		if err == nil && d < 0 {
			err = fmt.Errorf("%s can't be negative: %s", name, d)
		}
		*of(s) = d
		return err
	})
}

// count is an option with a number that is not negative.
func count(name, help string, of func(*settings) *int) corefile.Option[settings] {
	return corefile.Row(name, "N", help, 1, 1, func(s *settings, l *corefile.Line) error {
		n, err := strconv.Atoi(l.Args[0])
		if err == nil && n < 0 {
			err = fmt.Errorf("%s can't be negative: %d", name, n)
		}
		*of(s) = n
		return err
	})
}

func setReadTimeout(s *settings, l *corefile.Line) (err error) {
	if s.readTimeout, err = time.ParseDuration(l.Args[0]); err == nil && s.readTimeout <= 0 {
		err = fmt.Errorf("read_timeout must be positive: %s", s.readTimeout)
	}
	return err
}

func setMaxFails(s *settings, l *corefile.Line) error {
	n, err := strconv.ParseUint(l.Args[0], 10, 32)
	s.maxFails = uint32(n)
	return err
}

func setMaxAttempts(s *settings, l *corefile.Line) error {
	n, err := strconv.ParseUint(l.Args[0], 10, 32)
	max := uint32(n)
	s.maxAttempts = &max
	return err
}

func setDOHMethod(s *settings, l *corefile.Line) error {
	s.dohMethod = strings.ToUpper(l.Args[0])
	if s.dohMethod != http.MethodGet && s.dohMethod != http.MethodPost {
		return errors.New("doh_method must be either POST or GET")
	}
	return nil
}

func setTLS(s *settings, l *corefile.Line) (err error) {
	root := dnsserver.GetConfig(l.Controller()).Root
	s.tls, err = tls.NewTLSConfigFromArgs(corefile.AllBelow(root, l.Args)...)
	return err
}

func setPolicy(s *settings, l *corefile.Line) error {
	s.policy = l.Args[0]
	if policy.Named(s.policy) == nil {
		return fmt.Errorf("unknown policy '%s': must be one of %s%s", s.policy, strings.Join(policy.Names, ", "), corefile.Meant(s.policy, policy.Names))
	}
	return nil
}

func setHealthCheck(s *settings, l *corefile.Line) error {
	d, err := time.ParseDuration(l.Args[0])
	if err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("health_check can't be negative: %d", d)
	}
	s.probeInterval = d
	for i := 1; i < len(l.Args); i++ {
		switch l.Args[i] {
		case "no_rec":
			s.options.HCRecursionDesired = false
		case "domain":
			if i++; i == len(l.Args) {
				return l.CountErr()
			}
			if _, ok := dns.IsDomainName(l.Args[i]); !ok {
				return fmt.Errorf("health_check: invalid domain name %s", l.Args[i])
			}
			s.options.HCDomain = plugin.Name(l.Args[i]).Normalize()
		default:
			return fmt.Errorf("health_check: unknown option %s", l.Args[i])
		}
	}
	return nil
}

func setNext(s *settings, l *corefile.Line) error {
	return addRcodes(&s.rules.next, l.Args)
}

func setFailover(s *settings, l *corefile.Line) error {
	if err := addRcodes(&s.rules.failover, l.Args); err != nil {
		return err
	}
	if s.rules.failover.has(dns.RcodeSuccess) {
		return errors.New("NoError cannot be used in failover")
	}
	return nil
}

func addRcodes(to *rcodes, names []string) error {
	for _, name := range names {
		rcode, ok := dns.StringToRcode[strings.ToUpper(name)]
		if !ok || rcode >= 32 {
			return fmt.Errorf("%s is not a valid rcode%s", name, corefile.RcodeChoice(name))
		}
		*to = to.with(rcode)
	}
	return nil
}

func setSource(s *settings, l *corefile.Line) error {
	if s.source = net.ParseIP(l.Args[0]); s.source == nil {
		return fmt.Errorf("invalid IP address: %s", l.Args[0])
	}
	return nil
}

func setResolver(s *settings, l *corefile.Line) error {
	for _, a := range l.Args {
		server, err := parse.HostPort(a, transport.Port)
		if err != nil {
			return fmt.Errorf("resolver must be an IP address or IP:port: %q", a)
		}
		s.resolvers = append(s.resolvers[:len(s.resolvers):len(s.resolvers)], server)
	}
	return nil
}
