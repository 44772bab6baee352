package tls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/caddyserver/certmagic"
	"github.com/coredns/caddy"
)

// issuerKey is the key of an instance's issuer.
type issuerKey struct{}

// issuer obtains the certificates of one instance and renews them, from the moment that its servers listen until it is shut
// down. Renewed certificates are used at once.
type issuer struct {
	challenges challenges

	mu      sync.Mutex
	domains map[string]account          // who is asked for the certificate of a domain
	stored  map[string]*tls.Certificate // by domain, as read by load; then it never changes
	configs map[account]*certmagic.Config
	cache   *certmagic.Cache // nil before start
	cancel  context.CancelFunc
	over    bool // the instance is shut down

	locks atomic.Int32 // in storages, that are held or asked for; see storage
}

var errNotManaged = errors.New("the server is starting")

// renewInterval is how often certificates are looked at; 0 stands for certmagic's default, ten minutes. Tests change it.
var renewInterval time.Duration

// setupACME makes the configuration that takes its certificates from an authority.
func setupACME(c *caddy.Controller, s acmeSettings) error {
	config := dnsserver.GetConfig(c)
	if err := s.complete(config.Root); err != nil {
		return err
	}
	i, ok := c.Get(issuerKey{}).(*issuer)
	if !ok {
		i = &issuer{domains: map[string]account{}}
		c.Set(issuerKey{}, i)
		c.OnStartup(func() error { i.load(); return nil })
		c.OnRestart(func() error { registerHook(); return nil })
		dnsserver.OnEnd(c, i.stop)
		dnsserver.AddPluginToAllServerBlocks(c, func(next plugin.Handler) plugin.Handler {
			return &Challenge{Next: next, of: &i.challenges, zones: i.challengeZones}
		})
	}
	if err := i.add(s); err != nil {
		return err
	}
	config.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return i.certificate(&s, hello)
	}}
	config.TLSIdentity = strings.Join(slices.Sorted(slices.Values(s.domains)), " ")
	registerHook()
	return nil
}

// add notes who is asked for the certificates of s.
func (i *issuer) add(s acmeSettings) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range s.domains {
		if other, ok := i.domains[d]; ok && other != s.account {
			return fmt.Errorf("ACME domain %q is configured with conflicting options", d)
		}
		i.domains[d] = s.account
	}
	return nil
}

// challengeZones are the names at which an authority asks for the records of a challenge.
func (i *issuer) challengeZones() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var zones []string
	for d := range i.domains {
		zones = append(zones, challengeOwner(strings.TrimPrefix(d, "*.")))
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// load reads what is in the storage, before the servers listen: handshakes come as soon as they do, and start comes
// later, in a reload by as long as the configuration before takes to end.
func (i *issuer) load() {
	i.mu.Lock()
	domains := maps.Clone(i.domains)
	i.mu.Unlock()
	found := map[string]*tls.Certificate{}
	for d, a := range domains {
		if cert := stored(a, d); cert != nil {
			found[d] = cert
		}
	}
	i.mu.Lock()
	i.stored = found
	i.mu.Unlock()
}

// registerHook sees to it that onEvent is registered: a reload by signal takes all hooks away before the next instance is set
// up, or while it is, if that is begun by another reload.
func registerHook() {
	defer func() { _ = recover() }() // it was registered
	caddy.RegisterEventHook(pluginName, onEvent)
}

// onEvent starts the issuer of an instance whose servers listen now: an authority may ask us at once.
func onEvent(event caddy.EventName, info any) error {
	inst, ok := info.(*caddy.Instance)
	if event != caddy.InstanceStartupEvent || !ok {
		return nil
	}
	inst.StorageMu.RLock()
	i, ok := inst.Storage[issuerKey{}].(*issuer)
	inst.StorageMu.RUnlock()
	if !ok {
		return nil
	}
	return i.start()
}

// start begins to manage the certificates, in goroutines that stop ends. What is in the storage is used at once.
func (i *issuer) start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over || i.cache != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	i.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(cert certmagic.Certificate) (*certmagic.Config, error) { return i.configFor(cert.Names) },
		RenewCheckInterval: renewInterval, Logger: zapLogger(),
	})
	i.configs = map[account]*certmagic.Config{}
	names := map[account][]string{}
	for d, a := range i.domains {
		names[a] = append(names[a], d)
	}
	var errs []error
	for a, domains := range names {
		cfg, err := i.newConfig(a)
		if err == nil {
			i.configs[a] = cfg
			writable := usable(ctx, cfg.Storage)
			err = cfg.ManageAsync(ctx, domains)
			go func() {
				if !writable {
					manageLater(ctx, cfg, domains)
				}
				mend(ctx, cfg, a, domains)
			}()
		}
		errs = append(errs, err)
	}
	go i.showEnds(ctx)
	return errors.Join(errs...)
}

// storageInterval is how often a storage is tried that nothing could be written to. Tests change it.
var storageInterval = time.Minute

// manageLater begins to manage the certificates anew once the storage takes them: certmagic gives up on a certificate
// if it cannot write before it asks for it.
func manageLater(ctx context.Context, cfg *certmagic.Config, domains []string) {
	ticks := time.NewTicker(storageInterval)
	defer ticks.Stop()
	for !usable(ctx, cfg.Storage) {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
	_ = cfg.ManageAsync(ctx, domains) // it logs what fails
}

// usable reports whether files can be written to a storage.
func usable(ctx context.Context, s certmagic.Storage) bool {
	const key = "coredns_test"
	err := s.Store(ctx, key, []byte(key))
	return err == nil && s.Delete(ctx, key) == nil
}

// newConfig is certmagic's configuration for an account.
func (i *issuer) newConfig(a account) (*certmagic.Config, error) {
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	cfg := certmagic.New(i.cache, certmagic.Config{
		Storage: &storage{certmagic.FileStorage{Path: a.storage}, &i.locks},
		// With a proxy function certmagic gives a responder half a minute; without one it waits for ever, and nothing is renewed
		// meanwhile.
		OCSP:   certmagic.OCSPConfig{HTTPProxy: http.ProxyFromEnvironment},
		Logger: zapLogger(),
	})
	cfg.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(cfg, certmagic.ACMEIssuer{
		CA: a.ca, Email: a.email, Agreed: true, TrustedRoots: roots, Resolver: a.resolver,
		DNS01Solver: &i.challenges, DisableHTTPChallenge: true, DisableTLSALPNChallenge: true,
		Logger: zapLogger(),
	})}
	return cfg, nil
}

// configFor is the configuration by which a certificate is renewed. It is called by certmagic's goroutines.
func (i *issuer) configFor(names []string) (*certmagic.Config, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range names {
		if cfg := i.configs[i.domains[n]]; cfg != nil {
			return cfg, nil
		}
	}
	return nil, fmt.Errorf("no ACME account for %v", names)
}

// unlockTime is how long stop waits for locks.
const unlockTime = 2 * time.Second

// stop ends all goroutines. It waits for the locks of those that ask an authority: who finds one that was left behind,
// such as the process that comes next, waits for ten seconds until he believes that.
func (i *issuer) stop() error {
	i.mu.Lock()
	i.over = true
	cache := i.cache
	if i.cancel != nil {
		i.cancel()
	}
	i.mu.Unlock()
	if cache != nil {
		cache.Stop()
	}
	for end := time.Now().Add(unlockTime); i.locks.Load() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// certificate is the certificate for a client of the listener that s configures.
func (i *issuer) certificate(s *acmeSettings, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	domain := s.covers(hello.ServerName)
	if domain == "" {
		return nil, fmt.Errorf("no ACME certificate is for %q", hello.ServerName)
	}
	i.mu.Lock()
	cfg, stored := i.configs[s.account], i.stored[domain]
	i.mu.Unlock()
	err := errNotManaged
	if cfg != nil {
		asked := *hello
		asked.ServerName = domain
		var cert *tls.Certificate
		if cert, err = cfg.GetCertificateWithContext(hello.Context(), &asked); err == nil {
			return cert, nil
		}
	}
	if stored != nil {
		return stored, nil
	}
	return nil, fmt.Errorf("ACME certificate is not ready for %q: %w", domain, err)
}
