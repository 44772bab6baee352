package tls

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/caddyserver/certmagic"
	"github.com/miekg/dns"
	"golang.org/x/net/idna"
)

// acmeSettings is what a directive says about certificates of an authority that speaks ACME (RFC 8555).
type acmeSettings struct {
	domains []string // in lower case, ASCII; the first one is for clients that name none
	account
}

// account is what is the same for all domains of a directive. It can be compared.
type account struct {
	email    string
	ca       string // URL of its directory
	caRoot   string // file with the authorities of that URL's own certificate; "" for those of the system
	resolver string // HOST:PORT; "" for the system's
	storage  string // folder
}

var errNoDomain = errors.New("ACME requires at least one domain: name it by the option acme, or give files by tls CERT KEY [CA]")

// acmeOption is an option of directives without files.
func acmeOption(name, syntax, help string, max int, set func(a *acmeSettings, args []string) error) corefile.Option[settings] {
	return corefile.Row(name, syntax, help, 0, -1, func(s *settings, l *corefile.Line) error {
		switch {
		case len(s.files) > 0:
			return l.Errf("unknown option '%s': it is not for certificates from files (allowed: client_auth, keylog)", name)
		case len(l.Args) == 0 || max > 0 && len(l.Args) > max:
			return l.CountErr()
		case slices.Contains(s.given, name):
			return l.Errf("ACME option %q can only be specified once", name)
		}
		s.given = append(s.given, name)
		return set(&s.acme, l.Args)
	})
}

// acmeOptions are the options of directives without files.
var acmeOptions = corefile.Table[settings]{
	acmeOption("acme", "DOMAIN...", "names that the certificate is for", 0, setDomains),
	acmeOption("email", "ADDRESS", "whom the authority may write to", 1, func(a *acmeSettings, args []string) error {
		a.email = args[0]
		return nil
	}),
	acmeOption("ca", "URL", "directory of the authority", 1, func(a *acmeSettings, args []string) error {
		u, err := url.Parse(args[0])
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("invalid ACME CA URL %q", args[0])
		}
		a.ca = args[0]
		return nil
	}),
	acmeOption("storage", "DIR", "folder for accounts, keys and certificates", 1, func(a *acmeSettings, args []string) error {
		a.storage = args[0]
		return nil
	}),
	acmeOption("ca_root", "FILE", "authorities of the authority's own server", 1, func(a *acmeSettings, args []string) error {
		a.caRoot = args[0]
		return nil
	}),
	acmeOption("resolver", "HOST:PORT", "resolver with which the authority is found", 1, func(a *acmeSettings, args []string) error {
		host, port, err := net.SplitHostPort(args[0])
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || perr != nil || n == 0 {
			return fmt.Errorf("invalid ACME resolver %q: must be HOST:PORT", args[0])
		}
		a.resolver = args[0]
		return nil
	}),
}

func setDomains(a *acmeSettings, args []string) error {
	for _, arg := range args {
		d, err := parseDomain(arg)
		if err != nil {
			return err
		}
		if !slices.Contains(a.domains, d) {
			a.domains = append(a.domains, d)
		}
	}
	return nil
}

// parseDomain is a name that a certificate may be for: a host, or all hosts below one ("*.example.org").
func parseDomain(text string) (string, error) {
	name, wild := strings.CutPrefix(strings.TrimSuffix(text, "."), "*.")
	ascii, err := idna.Lookup.ToASCII(name)
	_, numeric := netip.ParseAddr(name)
	labels, ok := dns.IsDomainName(ascii)
	if err != nil || numeric == nil || !ok || labels == 0 || ascii == "" || strings.Contains(ascii, "*") {
		return "", fmt.Errorf("invalid ACME domain %q", text)
	}
	ascii = strings.ToLower(ascii)
	if wild {
		return "*." + ascii, nil
	}
	return ascii, nil
}

// complete fills in the defaults and makes names of files absolute; relative ones lie below root.
func (a *acmeSettings) complete(root string) error {
	if len(a.domains) == 0 {
		return errNoDomain
	}
	if a.ca == "" {
		a.ca = certmagic.LetsEncryptProductionCA
	}
	if a.storage == "" {
		a.storage = filepath.Join(".coredns", "acme")
	}
	var err error
	if a.storage, err = filepath.Abs(under(root, a.storage)); err != nil {
		return fmt.Errorf("ACME storage: %w", err)
	}
	if a.caRoot == "" {
		return nil
	}
	a.caRoot = under(root, a.caRoot)
	_, err = a.roots()
	return err
}

// roots are the authorities that the authority's own certificate is checked with, nil for those of the system.
func (a *account) roots() (*x509.CertPool, error) {
	if a.caRoot == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(a.caRoot)
	if err != nil {
		return nil, fmt.Errorf("ACME CA root: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ACME CA root %s has no certificates", a.caRoot)
	}
	return pool, nil
}

// covers is the domain that a client which asks for name is served with, "" if there is none. Clients that name
// none get the first domain.
func (a *acmeSettings) covers(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" {
		return a.domains[0]
	}
	_, parent, _ := strings.Cut(name, ".")
	for _, d := range a.domains {
		if d == name || d == "*."+parent {
			return d
		}
	}
	return ""
}
