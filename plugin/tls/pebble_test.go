package tls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	golog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/caddyserver/certmagic"
	"github.com/coredns/caddy"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// pebble is an authority for tests, that of Let's Encrypt. It looks names up at the server that it is told.
type pebble struct {
	port   string // of the server that answers it, over UDP and TCP
	server *httptest.Server
	ready  chan http.Handler
	roots  string // file with the certificate of its HTTP server
}

func newPebble(t *testing.T) *pebble {
	t.Helper()
	p := &pebble{port: strconv.Itoa(loopback.Port()), ready: make(chan http.Handler, 1)}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := <-p.ready
		p.ready <- h
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.roots = filepath.Join(t.TempDir(), "pebble.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(p.roots, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// begin has the authority work, with certificates that are valid for so many seconds.
func (p *pebble) begin(t *testing.T, seconds uint64) {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	logger := golog.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	authority := ca.New(logger, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "default", ValidityPeriod: seconds}})
	checks := va.New(logger, 0, 0, false, "127.0.0.1:"+p.port, store)
	front := wfe.New(logger, store, checks, authority, []string{"pebble.example.org"}, false, false, 1, 1)
	p.ready <- front.Handler()
}

func (p *pebble) directory() string { return p.server.URL + wfe.DirectoryPath }

// acmeServer starts a server that gets its certificate from p, and returns the address of DNS over TLS.
func acmeServer(t *testing.T, p *pebble, storage string) (i *caddy.Instance, dot string) {
	t.Helper()
	quiet, directives := caddy.Quiet, dnsserver.Directives
	caddy.Quiet, dnsserver.Quiet = true, true
	dnsserver.Directives = []string{"cache", pluginName} // in the order of plugin.cfg
	t.Cleanup(func() { caddy.Quiet, dnsserver.Directives = quiet, directives })
	i, err := caddy.Start(configOf(p, storage))
	if err != nil {
		t.Fatal(err)
	}
	return i, i.Servers()[1].Addr().String()
}

func configOf(p *pebble, storage string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: fmt.Appendf(nil, `
example.org:%s {
    cache
}
tls://example.org:0 {
    tls {
        acme dns.example.org *.example.org *.dns.example.org
        ca %s
        ca_root %s
        storage %s
        email admin@example.org
    }
}
`, p.port, p.directory(), p.roots, storage)}
}

// shown is the certificate that a server shows to who asks for name.
func shown(addr, name string) (*x509.Certificate, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: name})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

// obtained is the certificate for domain that is shown to who asks for name, when it is another one than old. Before
// it is there, that of a wildcard may be shown.
func obtained(t *testing.T, addr, name, domain string, old *x509.Certificate) *x509.Certificate {
	t.Helper()
	var last error
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		cert, err := shown(addr, name)
		if last = err; err == nil && cert.DNSNames[0] == domain && (old == nil || !cert.Equal(old)) {
			return cert
		}
	}
	t.Fatalf("no certificate for %q: %v", name, last)
	return nil
}

// TestPebble obtains certificates from an authority, by the records that the server itself answers, also after a reload, and
// after a start with what is in the storage.
func TestPebble(t *testing.T) {
	out := logtest.Capture(t)
	p, storage := newPebble(t), t.TempDir()
	i, dot := acmeServer(t, p, storage)
	if _, err := shown(dot, "dns.example.org"); err == nil {
		t.Error("there is a certificate before the authority gave one")
	}
	p.begin(t, 0)
	cert := obtained(t, dot, "dns.example.org", "dns.example.org", nil)
	if !strings.Contains(cert.Issuer.CommonName, "Pebble") || cert.VerifyHostname("dns.example.org") != nil {
		t.Errorf("got a certificate of %v for %v", cert.Issuer, cert.DNSNames)
	}
	if wild := obtained(t, dot, "www.example.org", "*.example.org", nil); wild.VerifyHostname("www.example.org") != nil || wild.VerifyHostname("dns.example.org") != nil {
		t.Errorf("got a certificate for %v", wild.DNSNames)
	}
	// A domain and the one of all hosts below it are shown by records of one name, one after the other.
	if below := obtained(t, dot, "www.dns.example.org", "*.dns.example.org", nil); below.VerifyHostname("www.dns.example.org") != nil {
		t.Errorf("got a certificate for %v", below.DNSNames)
	}
	if none := obtained(t, dot, "", "dns.example.org", nil); !none.Equal(cert) {
		t.Error("who names nobody does not get the first domain's certificate")
	}
	if _, err := shown(dot, "example.net"); err == nil {
		t.Error("there is a certificate for a name that is not ours")
	}

	i.OnShutdown = append(i.OnShutdown, func() error { // the next configuration listens, and is not told so yet
		if early, err := shown(dot, "dns.example.org"); err != nil || !early.Equal(cert) {
			t.Errorf("while a reload goes on: %v", err)
		}
		return nil
	})
	i, err := i.Restart(configOf(p, storage))
	if err != nil {
		t.Fatal(err)
	}
	if again := obtained(t, i.Servers()[1].Addr().String(), "dns.example.org", "dns.example.org", nil); !again.Equal(cert) {
		t.Error("the certificate of the storage is not used after a reload")
	}
	end(t, i)
	if !strings.Contains(out.String(), "[INFO] plugin/tls: certificate obtained successfully") {
		t.Errorf("log: %s", out)
	}
}

// TestPebbleRenews has certificates that are valid for a few seconds: they are renewed while the server goes on.
func TestPebbleRenews(t *testing.T) {
	logtest.Capture(t)
	renewInterval, endsInterval = time.Second, 100*time.Millisecond
	defer func() { renewInterval, endsInterval = 0, 10*time.Second }()
	p := newPebble(t)
	i, dot := acmeServer(t, p, t.TempDir())
	defer end(t, i)
	p.begin(t, 10)
	first := obtained(t, dot, "dns.example.org", "dns.example.org", nil)
	endShown(t, "dns.example.org", first)
	second := obtained(t, dot, "dns.example.org", "dns.example.org", first)
	if second.NotAfter.Before(first.NotAfter) { // its unit is the second
		t.Errorf("valid until %v, then until %v", first.NotAfter, second.NotAfter)
	}
	endShown(t, "dns.example.org", second)
}

// endShown waits until metrics tell of the end of a certificate for a domain, or of a later one.
func endShown(t *testing.T, domain string, cert *x509.Certificate) {
	t.Helper()
	var got float64
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = testutil.ToFloat64(notAfter.WithLabelValues(domain)); got >= float64(cert.NotAfter.Unix()) {
			return
		}
	}
	t.Errorf("%s is told to end at %v, not at %v", domain, got, cert.NotAfter.Unix())
}

// TestPebbleStorage has a storage that cannot be written when the server starts: there is a certificate soon after it can.
func TestPebbleStorage(t *testing.T) {
	out := logtest.Capture(t)
	every := storageInterval
	storageInterval = 20 * time.Millisecond
	defer func() { storageInterval = every }()
	p, storage := newPebble(t), filepath.Join(t.TempDir(), "storage")
	if err := os.Symlink(filepath.Join(t.TempDir(), "not", "mounted"), storage); err != nil {
		t.Fatal(err)
	}
	i, dot := acmeServer(t, p, storage)
	defer end(t, i)
	p.begin(t, 0)
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "failed storage check"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the storage was not tried: %s", out)
		}
	}
	if err := os.Remove(storage); err != nil {
		t.Fatal(err)
	}
	obtained(t, dot, "dns.example.org", "dns.example.org", nil)
}

// TestPebbleDamaged has a storage in which a certificate and its key do not fit together, and one with half of what is
// known of it: others are obtained.
func TestPebbleDamaged(t *testing.T) {
	out := logtest.Capture(t)
	pause := damagedPause
	damagedPause = 20 * time.Millisecond
	defer func() { damagedPause = pause }()
	p, storage := newPebble(t), t.TempDir()
	i, dot := acmeServer(t, p, storage)
	p.begin(t, 0)
	names := map[string]string{"dns.example.org": "dns.example.org", "www.example.org": "*.example.org", "www.dns.example.org": "*.dns.example.org"}
	before := map[string]*x509.Certificate{}
	for name, domain := range names {
		before[name] = obtained(t, dot, name, domain, nil)
	}
	end(t, i)
	folder := filepath.Join(storage, certmagic.StorageKeys.CertsPrefix(authorityOf(account{ca: p.directory()})))
	key, err := os.ReadFile(filepath.Join(folder, "dns.example.org", "dns.example.org.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(folder, "wildcard_.example.org", "wildcard_.example.org.key"), key, 0o600),
		os.WriteFile(filepath.Join(folder, "wildcard_.dns.example.org", "wildcard_.dns.example.org.json"), []byte(`{"sans":`), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	i, dot = acmeServer(t, p, storage)
	defer end(t, i)
	for _, name := range []string{"www.example.org", "www.dns.example.org"} {
		obtained(t, dot, name, names[name], before[name])
	}
	if good, err := shown(dot, "dns.example.org"); err != nil || !good.Equal(before["dns.example.org"]) {
		t.Errorf("a certificate that can be used is not: %v", err)
	}
	aside, err := os.ReadFile(filepath.Join(folder, "wildcard_.example.org.damaged", "wildcard_.example.org.key"))
	if err != nil || !bytes.Equal(aside, key) {
		t.Errorf("what was in the storage is not kept: %v", err)
	}
	if n := strings.Count(out.String(), "in the storage cannot be used, another one is obtained"); n != 2 {
		t.Errorf("told %d times:\n%s", n, out)
	}
}

// TestPebbleIsLeft ends the server while it waits for the authority: the locks of the storage are free for the next one.
func TestPebbleIsLeft(t *testing.T) {
	p, storage := newPebble(t), t.TempDir()
	i, _ := acmeServer(t, p, storage)
	locks := func() int {
		found, _ := filepath.Glob(filepath.Join(storage, "locks", "*"))
		return len(found)
	}
	for deadline := time.Now().Add(20 * time.Second); locks() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the storage is never locked")
		}
	}
	end(t, i)
	if n := locks(); n > 0 {
		t.Errorf("%d locks are left", n)
	}
	p.begin(t, 0) // so that its server can be closed
}

// end stops an instance with its plugins.
func end(t *testing.T, i *caddy.Instance) {
	t.Helper()
	for _, err := range i.ShutdownCallbacks() {
		t.Error(err)
	}
	i.Stop()
}
