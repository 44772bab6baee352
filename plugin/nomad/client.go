package nomad

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	pkgtls "github.com/coredns/coredns/plugin/pkg/tls"
)

// instance is one registration of a service, as the API has it.
type instance struct {
	ID, ServiceName, Namespace, Address string
	Port                                int

	addr netip.Addr // of Address; the zero Addr if it is none
}

// agent is one Nomad agent's HTTP API.
type agent struct {
	base          string        // URL, without a slash at its end
	shown         string        // base without a password
	user          *url.Userinfo // nil: as base has it
	token, region string
	http          *http.Client
}

// maxConns is how many connections an agent is asked over: it refuses those beyond 100, and other programs at our address need some.
const maxConns = 64

// pings find out that a connection of HTTP/2 is dead: all queries share it, and would fail for a quarter of an hour.
// It is a variable for tests.
var pings = http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}

const defaultAddress = "http://127.0.0.1:4646"

// newAgent is the agent at an address: a URL, or unix://PATH. What it says nothing about comes from the variables of the
// environment that Nomad's own tools read.
func newAgent(address, token string) (*agent, error) {
	if address == "" {
		if address = os.Getenv("NOMAD_ADDR"); address == "" {
			address = defaultAddress
		}
	}
	if token == "" {
		token = os.Getenv("NOMAD_TOKEN")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxIdleConnsPerHost = maxConns, maxConns
	http2 := pings
	transport.HTTP2 = &http2
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("address %q: %w", address, err)
	case u.Scheme == "unix":
		path := u.Host + u.Path
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		address = "http://127.0.0.1"
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("address %q: want http://HOST:PORT, https://HOST:PORT or unix://PATH", address)
	case u.Scheme == "https":
		if transport.TLSClientConfig, err = tlsFromEnvironment(); err != nil {
			return nil, err
		}
	}
	shown := address
	if u.User != nil {
		shown = u.Redacted()
	}
	a := &agent{base: strings.TrimSuffix(address, "/"), shown: strings.TrimSuffix(shown, "/"), token: token, region: os.Getenv("NOMAD_REGION")}
	a.http = &http.Client{Transport: transport, CheckRedirect: keepToken}
	if auth := os.Getenv("NOMAD_HTTP_AUTH"); auth != "" && u.User == nil {
		name, password, _ := strings.Cut(auth, ":")
		a.user = url.UserPassword(name, password)
	}
	return a, nil
}

const tokenHeader, maxRedirects = "X-Nomad-Token", 10

// keepToken is http.Client.CheckRedirect. The token is for the agent, over what it was given for: package net/http takes
// only headers that it knows away before it asks another host.
func keepToken(r *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("redirected too often")
	}
	if first := via[0].URL; r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		r.Header.Del(tokenHeader)
	}
	return nil
}

func tlsFromEnvironment() (cfg *tls.Config, err error) {
	cert, key, ca := os.Getenv("NOMAD_CLIENT_CERT"), os.Getenv("NOMAD_CLIENT_KEY"), os.Getenv("NOMAD_CACERT")
	args := []string{cert, key, ca}
	if cert == "" {
		args = args[2:]
	}
	if ca == "" {
		args = args[:len(args)-1]
	}
	if cfg, err = pkgtls.NewTLSConfigFromArgs(args...); err != nil {
		return nil, err
	}
	if dir := os.Getenv("NOMAD_CAPATH"); dir != "" && ca == "" {
		if cfg.RootCAs, err = rootsIn(dir); err != nil {
			return nil, err
		}
	}
	cfg.ServerName = os.Getenv("NOMAD_TLS_SERVER_NAME")
	cfg.InsecureSkipVerify, _ = strconv.ParseBool(os.Getenv("NOMAD_SKIP_VERIFY"))
	return cfg, nil
}

// rootsIn reads the CAs in the files of a folder.
func rootsIn(dir string) (*x509.CertPool, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	roots, found := x509.NewCertPool(), false
	for _, f := range files {
		pem, err := os.ReadFile(filepath.Join(dir, f.Name()))
		found = err == nil && roots.AppendCertsFromPEM(pem) || found // there may be folders, and other files
	}
	if !found {
		return nil, fmt.Errorf("%s: no file has a certificate in PEM form", dir)
	}
	return roots, nil
}

// get asks for a path and reads the answer, JSON, into out. It returns the index of the answer, for a blocking query.
func (a *agent) get(ctx context.Context, path string, query url.Values, out any) (index uint64, err error) {
	if a.region != "" {
		query.Set("region", a.region)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, err
	}
	if a.token != "" {
		req.Header.Set(tokenHeader, a.token)
	}
	if a.user != nil {
		password, _ := a.user.Password()
		req.SetBasicAuth(a.user.Username(), password)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return 0, nil
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 256))
		return 0, fmt.Errorf("%s%s: %s: %s", a.shown, path, resp.Status, strings.Join(strings.Fields(string(text)), " "))
	}
	body := io.LimitReader(resp.Body, maxAnswer)
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return 0, fmt.Errorf("%s%s: %w", a.shown, path, err)
	}
	// A connection whose answer was not read to its end serves no other.
	_, _ = io.Copy(io.Discard, body)
	index, _ = strconv.ParseUint(resp.Header.Get("X-Nomad-Index"), 10, 64) // none is 0
	return index, nil
}

const maxAnswer = 16 << 20

// agents are all that may be asked, of which one is until it fails.
type agents struct {
	all      []*agent
	current  atomic.Int64
	answered atomic.Bool // one of them has
}

var errNoAgent = errors.New("no agent")

// get asks the current agent, and the others if it fails or takes longer than each of them may. The error tells of each that
// was asked: that another one is down is not why the first refused.
func (s *agents) get(ctx context.Context, each time.Duration, path string, query url.Values, out any) (index uint64, err error) {
	failures := errNoAgent
	first := int(s.current.Load())
	for i := range s.all {
		at := (first + i) % len(s.all)
		one, cancel := context.WithTimeout(ctx, each)
		index, err = s.all[at].get(one, path, query, out)
		if one.Err() != nil { // the next query is not to find that other connections are dead, too
			s.all[at].http.CloseIdleConnections()
		}
		cancel()
		if err == nil {
			if i > 0 { // else it may have answered to what was asked before it failed others
				s.current.Store(int64(at))
			}
			s.answered.Store(true)
			return index, nil
		}
		if i == 0 {
			failures = err
		} else {
			failures = fmt.Errorf("%w; %w", failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return 0, failures
}

func (s *agents) ready() bool { return len(s.all) == 1 || s.answered.Load() }

// probe finds an agent that answers.
func (s *agents) probe(ctx context.Context) error {
	var self struct{}
	_, err := s.get(ctx, s.each(), "/v1/agent/self", url.Values{}, &self)
	return err
}

func (s *agents) close() {
	for _, a := range s.all {
		a.http.CloseIdleConnections()
	}
}

// requestTime is how long a query waits for the answer of an agent, or of several ones in turn.
const requestTime = 5 * time.Second

// each is how long one agent may take then, so that others are asked in time.
func (s *agents) each() time.Duration { return requestTime / time.Duration(max(1, len(s.all))) }
