package webconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/crypto/bcrypt"
)

// write writes a file into dir and is its path.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate writes cert.pem and key.pem into dir. The certificate is its own authority, and of a server and a client.
func certificate(t testing.TB, dir, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	write(t, dir, "cert.pem", string(certText))
	write(t, dir, "key.pem", string(keyText))
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

const pair = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"

// files are web configuration files, right ones and wrong ones.
var files = []string{
	"", "{}", pair, "a: b\n", "tls_server_config: [", "tls_server_config:\n  cert_file: none.pem\n  key_file: key.pem\n",
	"tls_server_config:\n  cert_file: cert.pem\n", "tls_server_config:\n  key_file: key.pem\n",
	"tls_server_config:\n  cert_file: cert.pem\n  key: none\n", "tls_server_config:\n  cert: a\n  key: b\n",
	pair + "  client_ca_file: cert.pem\n", pair + "  client_ca_file: none.pem\n  client_auth_type: RequestClientCert\n",
	pair + "  client_ca_file: cert.pem\n  client_auth_type: RequireAndVerifyClientCert\n",
	pair + "  client_ca: text\n  client_auth_type: VerifyClientCertIfGiven\n  client_allowed_sans: [a, b]\n",
	pair + "  client_auth_type: RequireClientCert\n", pair + "  client_auth_type: RequireAnyClientCert\n", pair + "  client_auth_type: Any\n",
	"tls_server_config:\n  client_auth_type: NoClientCert\n",
	pair + "  min_version: TLS13\n  max_version: TLS13\n", pair + "  min_version: TLS10\n", pair + "  min_version: SSL3\n",
	pair + "  curve_preferences: [CurveP256, X25519]\n", pair + "  curve_preferences: [P256]\n",
	pair + "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n", pair + "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n",
	pair + "  prefer_server_cipher_suites: false\n", pair + "  prefer_server_cipher_suites: 3\n",
	"http_server_config:\n  http2: false\n", "http_server_config:\n  http3: true\n", pair + "http_server_config:\n  http2: true\n",
	"http_server_config:\n  headers:\n    X-Frame-Options: deny\n", "http_server_config:\n  headers:\n    X-Frame-Options: allow\n",
	"http_server_config:\n  headers:\n    X-Other: a\n", "http_server_config:\n  headers:\n    Content-Security-Policy: a\n",
	"rate_limit:\n  burst: 3\n  interval: 2s\n", "rate_limit:\n  interval: long\n", "rate_limit:\n  burst: many\n",
	"basic_auth_users:\n  ann: $2y$04$abcdefghijklmnopqrstuuMTn1Bf8mDBKnXuYUGpJXVdbGOmtTrG6\n", "basic_auth_users:\n  ann: secret\n", "basic_auth_users: ann\n",
}

// What the toolkit takes is taken, and nothing else.
func TestValidateAsToolkit(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "example.org")
	right := 0
	for _, text := range files {
		path := write(t, dir, "web.yml", text)
		got, want := Validate(path), web.Validate(path)
		if (got == nil) != (want == nil) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if got == nil {
			right++
		}
	}
	if right < 10 || right > len(files)-10 {
		t.Errorf("%d of %d files are right", right, len(files))
	}
	if err := Validate(filepath.Join(dir, "none.yml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := Validate(""); err != nil {
		t.Error(err)
	}
}

func FuzzValidate(f *testing.F) {
	dir := f.TempDir()
	certificate(f, dir, "example.org")
	for _, text := range files {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := write(t, dir, "web.yml", text)
		if got, want := Validate(path), web.Validate(path); (got == nil) != (want == nil) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	})
}

// serve serves the text "it" as a file says, and is where.
func serve(t *testing.T, path string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "it") })}
	ended := make(chan error, 1)
	go func() { ended <- Serve(ln, s, path) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// get asks for url, on a connection of its own.
func get(t *testing.T, url string, config *tls.Config, login ...string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(login) == 2 {
		r.SetBasicAuth(login[0], login[1])
	}
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config, ForceAttemptHTTP2: true}}
	resp, err := c.Do(r)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

func TestServeUsers(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	users := "basic_auth_users:\n  ann: " + string(hash) + "\n"
	path := write(t, dir, "web.yml", users+"http_server_config:\n  headers:\n    X-Frame-Options: deny\n")
	url := "http://" + serve(t, path)
	ask := func(want int, login ...string) *http.Response {
		t.Helper()
		resp, err := get(t, url, nil, login...)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%q: status %d, want %d", login, resp.StatusCode, want)
		}
		return resp
	}
	for range 2 { // the second time from memory
		ask(401)
		ask(401, "ann", "wrong")
		ask(401, "bob", "secret")
		ask(401, "bob", "nobody")
		if resp := ask(200, "ann", "secret"); resp.Header.Get("X-Frame-Options") != "deny" {
			t.Errorf("headers are %v", resp.Header)
		}
	}
	if resp := ask(401); resp.Header.Get("WWW-Authenticate") != "Basic" {
		t.Errorf("headers are %v", resp.Header)
	}
	write(t, dir, "web.yml", "{}") // a change is obeyed by the next request
	ask(200)
	write(t, dir, "web.yml", "wrong: true")
	ask(500)
}

// What bcrypt said is kept for so many logins, and not more.
func TestKnownIsBounded(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{known: map[login]bool{}}
	for i := range maxKnown + 20 {
		if g.right(login{"ann", string(hash), strings.Repeat("x", i%70) + string(rune('a'+i/70))}) {
			t.Fatal("a wrong password is right")
		}
	}
	if len(g.known) != maxKnown {
		t.Errorf("%d logins are kept", len(g.known))
	}
	if !g.right(login{"ann", string(hash), "secret"}) {
		t.Error("the right password is wrong")
	}
}

func TestServeRate(t *testing.T) {
	path := write(t, t.TempDir(), "web.yml", "rate_limit:\n  burst: 2\n  interval: 1h\n")
	url := "http://" + serve(t, path)
	for i, want := range []int{200, 200, 429, 429} {
		resp, err := get(t, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, resp.StatusCode, want)
		}
	}
}

func TestServeTLS(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	ours, stranger := certificate(t, dir, "example.org"), certificate(t, other, "example.net")
	insecure := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, Certificates: certs} //nolint:gosec // made for the test
	}
	addr := serve(t, write(t, dir, "web.yml", pair))
	ask := func(c *tls.Config) *http.Response {
		t.Helper()
		resp, err := get(t, "https://"+addr, c)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	refused := func(c *tls.Config) {
		t.Helper()
		if resp, err := get(t, "https://"+addr, c); err == nil {
			t.Errorf("served: %s", resp.Status)
		}
	}
	if resp := ask(insecure()); resp.ProtoMajor != 2 {
		t.Errorf("protocol %s", resp.Proto)
	}
	if resp, err := get(t, "http://"+addr, nil); err != nil || resp.StatusCode != 400 {
		t.Errorf("plain HTTP: %v, %v", resp, err)
	}
	// What the file says when a connection comes is what counts.
	write(t, dir, "web.yml", pair+"  client_ca_file: cert.pem\n  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [example.org]\n")
	refused(insecure())
	ask(insecure(ours))
	refused(insecure(stranger))
	write(t, dir, "web.yml", pair+"  client_auth_type: RequireAnyClientCert\n  client_allowed_sans: [example.org]\n")
	ask(insecure(ours))
	refused(insecure(stranger))
	write(t, dir, "web.yml", pair+"  max_version: TLS12\n")
	if resp := ask(insecure()); resp.TLS.Version != tls.VersionTLS12 {
		t.Errorf("version %x", resp.TLS.Version)
	}
	// A certificate that is renewed is the one that is shown.
	write(t, dir, "web.yml", pair)
	renewed := certificate(t, dir, "renewed.example.org")
	if resp := ask(insecure()); !resp.TLS.PeerCertificates[0].Equal(renewed.Leaf) {
		t.Error("the old certificate is shown")
	}
}

func TestServeHTTP1(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "example.org")
	addr := serve(t, write(t, dir, "web.yml", pair+"http_server_config:\n  http2: false\n"))
	resp, err := get(t, "https://"+addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // made for the test
	if err != nil || resp.ProtoMajor != 1 {
		t.Errorf("%v, %v", resp, err)
	}
}
