package webconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
)

// tlsPart is the part of a file that is about TLS. A certificate, a key and authorities are PEM: in a file, or as text
// that stands here itself. A path goes before a text.
type tlsPart struct {
	// The server's certificate comes first in its text, then those between it and the authority; the key may be of any
	// kind that crypto/tls signs with.
	Cert         string `yaml:"cert"`
	CertFile     string `yaml:"cert_file"`
	Key          string `yaml:"key"`
	KeyFile      string `yaml:"key_file"`
	ClientCA     string `yaml:"client_ca"`
	ClientCAFile string `yaml:"client_ca_file"`

	// ClientAuth is one of the names in clientAuth. Authorities without it, or with NoClientCert, are a mistake.
	ClientAuth string `yaml:"client_auth_type"`
	// ClientNames are names, addresses or URIs, of which a client's certificate has one at least. Nil: any will do.
	ClientNames []string `yaml:"client_allowed_sans"`

	// Ciphers are those of TLS 1.2 and older, as 1.3 has none that one may choose. Nil: as Go has them.
	Ciphers   []cipher `yaml:"cipher_suites"`
	Curves    []curve  `yaml:"curve_preferences"`
	Min       version  `yaml:"min_version"`
	Max       version  `yaml:"max_version"`
	OurChoice bool     `yaml:"prefer_server_cipher_suites"` // without effect: Go chooses by itself
}

var defaultTLS = tlsPart{Min: tls.VersionTLS12, Max: tls.VersionTLS13}

// errNoTLS says that a file wants no TLS.
var errNoTLS = errors.New("TLS config is not present")

// clientAuth is what clients have to show.
var clientAuth = map[string]tls.ClientAuthType{
	"":                           tls.NoClientCert,
	"NoClientCert":               tls.NoClientCert,
	"RequestClientCert":          tls.RequestClientCert,
	"RequireAnyClientCert":       tls.RequireAnyClientCert,
	"RequireClientCert":          tls.RequireAnyClientCert, // its old name
	"VerifyClientCertIfGiven":    tls.VerifyClientCertIfGiven,
	"RequireAndVerifyClientCert": tls.RequireAndVerifyClientCert,
}

// config makes the configuration of a server. It fails if files are not there or do not fit. The certificate is read
// for each handshake.
func (t *tlsPart) config() (*tls.Config, error) {
	certified, keyed, verifying := t.Cert+t.CertFile != "", t.Key+t.KeyFile != "", t.ClientCA+t.ClientCAFile != ""
	// A file may be about users alone. A part with some of what TLS needs is a mistake, not plain HTTP.
	switch {
	case !certified && !keyed && !verifying && t.ClientAuth == "":
		return nil, errNoTLS
	case !certified:
		return nil, errors.New("missing one of cert or cert_file")
	case !keyed:
		return nil, errors.New("missing one of key or key_file")
	}
	if _, err := t.certificate(); err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion: uint16(t.Min), MaxVersion: uint16(t.Max),
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.certificate() },
	}
	for _, id := range t.Ciphers {
		c.CipherSuites = append(c.CipherSuites, uint16(id))
	}
	for _, id := range t.Curves {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(id))
	}
	// A text without a certificate in it leaves the pool empty: no client is trusted then.
	if verifying {
		text, err := textOf(t.ClientCA, t.ClientCAFile)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = x509.NewCertPool()
		c.ClientCAs.AppendCertsFromPEM(text)
	}
	if t.ClientNames != nil {
		c.VerifyPeerCertificate = t.allowed
	}
	var ok bool
	if c.ClientAuth, ok = clientAuth[t.ClientAuth]; !ok {
		return nil, errors.New("invalid ClientAuth: " + t.ClientAuth)
	}
	if verifying && c.ClientAuth == tls.NoClientCert {
		return nil, errors.New("client CA's have been configured without a Client Auth Policy")
	}
	return c, nil
}

// certificate reads certificate and key, which have to belong to each other.
func (t *tlsPart) certificate() (*tls.Certificate, error) {
	cert, err := textOf(t.Cert, t.CertFile)
	if err != nil {
		return nil, fmt.Errorf("failed to read cert_file (%s): %w", t.CertFile, err)
	}
	key, err := textOf(t.Key, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("failed to read key_file (%s): %w", t.KeyFile, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("failed to load X509KeyPair: %w", err)
	}
	return &pair, nil
}

// textOf is what a file has in it; without one, what stands there itself.
func textOf(text, name string) ([]byte, error) {
	if name == "" {
		return []byte(text), nil
	}
	return os.ReadFile(name)
}

// allowed is an error if a client's certificate has none of the names that the file lists. Without a certificate there
// is nothing to look at, if clients need not have one.
func (t *tlsPart) allowed(raw [][]byte, _ [][]*x509.Certificate) error {
	if len(raw) == 0 {
		return nil
	}
	cert, err := x509.ParseCertificate(raw[0])
	if err != nil {
		return fmt.Errorf("error parsing client certificate: %w", err)
	}
	// The subject's common name does not count (RFC 6125 §6.4.4).
	names := slices.Concat(cert.DNSNames, cert.EmailAddresses)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range cert.URIs {
		names = append(names, uri.String())
	}
	if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(t.ClientNames, name) }) {
		return fmt.Errorf("could not find allowed SANs in client cert, found: %v", t.ClientNames)
	}
	return nil
}

// cipher, curve and version are written by name.
type (
	cipher  uint16
	curve   tls.CurveID
	version uint16
)

// curves and versions are by the names that files have for them. Hybrid key exchange is Go's own choice.
var curves = map[string]curve{
	"CurveP256": curve(tls.CurveP256), "CurveP384": curve(tls.CurveP384), "CurveP521": curve(tls.CurveP521), "X25519": curve(tls.X25519),
}

var versions = map[string]version{
	"TLS10": tls.VersionTLS10, "TLS11": tls.VersionTLS11, "TLS12": tls.VersionTLS12, "TLS13": tls.VersionTLS13,
}

// UnmarshalYAML implements yaml.Unmarshaler. Suites that are not safe any more have no name.
func (c *cipher) UnmarshalYAML(unmarshal func(any) error) error {
	known := map[string]cipher{}
	for _, s := range tls.CipherSuites() {
		known[s.Name] = cipher(s.ID)
	}
	return byName(c, unmarshal, known, "cipher")
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *curve) UnmarshalYAML(unmarshal func(any) error) error {
	return byName(c, unmarshal, curves, "curve")
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (v *version) UnmarshalYAML(unmarshal func(any) error) error {
	return byName(v, unmarshal, versions, "TLS version")
}

// byName sets to to what the name that is unmarshalled stands for.
func byName[T any](to *T, unmarshal func(any) error, known map[string]T, what string) error {
	var name string
	if err := unmarshal(&name); err != nil {
		return err
	}
	value, ok := known[name]
	if !ok {
		return fmt.Errorf("unknown %s: %s", what, name)
	}
	*to = value
	return nil
}
