package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	k8slabels "k8s.io/apimachinery/pkg/labels"
)

func init() { plugin.Register(pluginName, setup) }

// settings is a stanza on its way into a Kubernetes.
type settings struct {
	*Kubernetes
	keys         []string // the server block's
	multicluster []string // zones, of which it is not known yet whether they are served
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ZONES...]", Max: -1, Set: setZones},
	Options: corefile.Table[settings]{
		corefile.Row("endpoint", "URL", "URL of the API", 1, -1, setEndpoint),
		corefile.Row("tls", "CERT KEY CACERT", "files for TLS with the API", 3, 3, func(s *settings, l *corefile.Line) error {
			s.APIClientCert, s.APIClientKey, s.APICertAuth = l.Args[0], l.Args[1], l.Args[2]
			return nil
		}),
		corefile.Row("kubeconfig", "KUBECONFIG [CONTEXT]", "file that says where the API is", 1, 2, func(s *settings, l *corefile.Line) error {
			s.ClientConfig = client.Kubeconfig(l.Args[0], l.Arg(1))
			return nil
		}),
		corefile.Row("apiserver_qps", "QPS", "requests to the API a second at most", 1, 1, setQPS),
		corefile.Row("apiserver_burst", "BURST", "requests to the API at once at most", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.burst, err = atLeast0(l)
			return err
		}),
		corefile.Row("apiserver_max_inflight", "MAX", "requests to the API at most that wait for an answer", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			s.maxInflight, err = atLeast0(l)
			return err
		}),
		corefile.Strings("namespaces", "NAMESPACE...", "the namespaces that are exposed", func(s *settings, all []string) {
			for _, ns := range all {
				s.Namespaces[ns] = struct{}{}
			}
		}),
		corefile.Row("namespace_labels", "EXPRESSION", "labels of the namespaces that are exposed", 1, -1, func(s *settings, l *corefile.Line) (err error) {
			s.namespaceLabels, err = selector("namespace_label", l.Args)
			return err
		}),
		corefile.Row("labels", "EXPRESSION", "labels of the objects that are exposed", 1, -1, func(s *settings, l *corefile.Line) (err error) {
			s.labels, err = selector("label", l.Args)
			return err
		}),
		corefile.Row("pods", "disabled|insecure|verified", "which names of pods there are", 1, 1, setPods),
		corefile.Flag("endpoint_pod_names", "call endpoints as their pods are", func(s *settings) { s.podNames = true }),
		corefile.Flag("ptr_hostname_only", "no PTR records for endpoints without a hostname", func(s *settings) { s.ptrHostnameOnly = true }),
		corefile.Row("ttl", "TTL", "TTL of the records, 0 to 3600", 1, 1, setTTL),
		corefile.Flag("noendpoints", "do not read endpoints", func(s *settings) { s.noEndpoints = true }),
		corefile.Fallthrough(func(s *settings, zones []string) { s.Fall.SetZonesFromArgs(zones) }),
		corefile.Row("ignore", "empty_service", "what is as if it did not exist", 0, -1, func(s *settings, l *corefile.Line) error {
			if len(l.Args) > 0 && l.Args[0] != "empty_service" {
				return fmt.Errorf("unable to parse ignore value: '%v'", l.Args[0])
			}
			s.ignoreEmpty = s.ignoreEmpty || len(l.Args) > 0
			return nil
		}),
		corefile.Row("multicluster", "[ZONES...]", "zones of imported services", 0, -1, func(s *settings, l *corefile.Line) (err error) {
			if len(l.Args) > 0 {
				s.multicluster, err = plugin.ZonesFromArgs(l.Args, nil)
			}
			return err
		}),
		corefile.Flag("zonal", "answer for endpoints by topology zone", func(s *settings) { s.zonal = true }),
		corefile.Row("startup_timeout", "DURATION", "how long the start waits for the API", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			if s.startupTimeout, err = time.ParseDuration(l.Args[0]); err != nil {
				return fmt.Errorf("failed to parse startup_timeout: %v, %w", l.Args[0], err)
			}
			return nil
		}),
	},
	Check: check,
})

func setZones(s *settings, l *corefile.Line) (err error) {
	if s.Zones, err = plugin.ZonesFromArgs(l.Args, s.keys); err != nil {
		return err
	}
	for _, z := range s.Zones {
		if name, err := wire.LowerName(z); err == nil && !wire.InReverse(name) {
			return nil
		}
	}
	return errors.New("non-reverse zone name must be used")
}

func setEndpoint(s *settings, l *corefile.Line) error {
	// What has no scheme is a host of http, as the client reads it.
	u, err := url.Parse(l.Args[0])
	if err == nil && u.Host != "" && u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme of endpoint %q must be http or https", l.Args[0])
	}
	s.APIServerList = l.Args
	if len(l.Args) > 1 {
		logger.Warningf("Multiple endpoints have been deprecated, only the first specified endpoint '%s' is used", l.Args[0])
	}
	return nil
}

func setQPS(s *settings, l *corefile.Line) error {
	qps, err := strconv.ParseFloat(l.Args[0], 32)
	if err != nil {
		return fmt.Errorf("invalid %s %q: %w", l.Name(), l.Args[0], err)
	}
	if !(qps >= 0) { // nor is it no number
		return fmt.Errorf("%s must be >= 0: %s", l.Name(), l.Arg(0))
	}
	s.qps = float32(qps)
	return nil
}

func atLeast0(l *corefile.Line) (int, error) {
	n, err := strconv.Atoi(l.Args[0])
	if err != nil {
		return 0, fmt.Errorf("invalid %s %q: %w", l.Name(), l.Args[0], err)
	}
	if n < 0 {
		return 0, fmt.Errorf("%s must be >= 0: %s", l.Name(), l.Arg(0))
	}
	return n, nil
}

// selector reads a label selector and returns it as the API takes it.
func selector(what string, words []string) (string, error) {
	text := strings.Join(words, " ")
	sel, err := k8slabels.Parse(text)
	if err != nil {
		return "", fmt.Errorf("unable to parse %s selector value: '%v': %w", what, text, err)
	}
	return sel.String(), nil
}

func setPods(s *settings, l *corefile.Line) error {
	mode, ok := podModes[l.Args[0]]
	if !ok {
		return fmt.Errorf("wrong value for pods: %s,  must be one of: disabled, verified, insecure%s", l.Args[0], corefile.Meant(l.Args[0], []string{"disabled", "verified", "insecure"}))
	}
	s.pods = mode
	return nil
}

func setTTL(s *settings, l *corefile.Line) error {
	n, err := strconv.Atoi(l.Args[0])
	if err != nil {
		return err
	}
	if n < 0 || n > 3600 {
		return fmt.Errorf("ttl must be in range [0, 3600]: %d", n)
	}
	s.ttl = uint32(n)
	return nil
}

// check looks at options that concern each other.
func check(s *settings) error {
	switch {
	case len(s.Namespaces) > 0 && s.namespaceLabels != "":
		return errors.New("namespaces and namespace_labels cannot both be set")
	case s.zonal && s.noEndpoints:
		return errors.New("zonal requires the endpoint cache; remove noendpoints")
	case s.ignoreEmpty && s.noEndpoints:
		return errors.New("ignore empty_service requires the endpoint cache; remove noendpoints")
	}
	for _, z := range s.multicluster {
		if !slices.Contains(s.Zones, z) {
			return fmt.Errorf("is not authoritative for the multicluster zone %s (authoritative zones: %v)", z, s.Zones)
		}
	}
	s.Kubernetes.multicluster = s.multicluster
	return nil
}

func setup(c *caddy.Controller) error {
	k, err := parseBlock(c)
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	onStart, onShut, err := k.InitKubeCache(context.Background())
	if err != nil {
		return plugin.Error(pluginName, err)
	}
	c.OnStartup(func() error {
		c.OnShutdown(onShut)
		return onStart()
	})
	if conn, ok := k.APIConn.(*controller); ok {
		c.OnRestart(func() error { conn.offer(); return nil })
		c.OnRestartFailed(func() error { conn.withdraw(); return nil })
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		k.Next = next
		return k
	})
	return nil
}

// parseBlock reads the one stanza that a server block may have.
func parseBlock(c *caddy.Controller) (k *Kubernetes, err error) {
	first := ""
	for c.Next() {
		at := corefile.Word{Text: c.Val(), File: c.File(), Line: c.Line()}
		if k != nil {
			return nil, corefile.ErrorAt(at, "%w: '%s' stands at %s already", plugin.ErrOnce, pluginName, first)
		}
		first = at.Place()
		if k, err = ParseStanza(c); err != nil {
			return nil, err
		}
	}
	return k, nil
}
