package recurse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/localroot"
)

// This file has a copy of the root zone answer in place of the root's servers (RFC 8806), where the operator wants
// that.

func setLocalRoot(s *settings, l *corefile.Line) error {
	switch l.Args[0] {
	case "transfer":
		for _, a := range l.Args[1:] {
			var ap netip.AddrPort
			hp, err := parse.HostPort(a, "53")
			if err == nil {
				ap, err = netip.ParseAddrPort(hp)
			}
			if err != nil || ap.Port() == 0 {
				return fmt.Errorf("local_root: %q is not an IP address, with or without a port", a)
			}
			s.roots = append(s.roots, localroot.Transfer(hp))
		}
	case "url":
		if len(l.Args) > 2 {
			return l.CountErr()
		}
		u, err := url.Parse(l.Args[1])
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("local_root: %q is not a URL of https", l.Args[1])
		}
		s.roots = append(s.roots, &localroot.URL{URL: u.String(), Client: &http.Client{CheckRedirect: onlyHTTPS}})
	case "file":
		if len(l.Args) > 2 {
			return l.CountErr()
		}
		s.roots = append(s.roots, &localroot.File{Path: corefile.Below(dnsserver.GetConfig(l.Controller()).Root, l.Args[1])})
	default:
		return fmt.Errorf("local_root expects 'transfer', 'url' or 'file', got %q", l.Args[0])
	}
	return nil
}

const mostRedirects = 5

// onlyHTTPS is http.Client.CheckRedirect.
func onlyHTTPS(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" || len(via) > mostRedirects {
		return fmt.Errorf("redirected to %q", r.URL)
	}
	return nil
}

// keepRoot makes the copy of the root zone, if one is wanted. It begins with start.
func (r *resolver) keepRoot(s *settings) {
	if len(s.roots) == 0 {
		return
	}
	r.root = &localroot.Copy{Sources: s.roots, Now: clock.Now, Log: logger, Changed: r.counts.rootSerial}
	r.conf.LocalRoot = r.root
}

// runRoot keeps the copy up to date until stop.
func (r *resolver) runRoot() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-r.quit
		cancel()
	}()
	r.root.Run(ctx, func(d time.Duration) time.Duration { return rand.N(d) })
}
