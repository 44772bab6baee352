package nomad

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// The variables of Nomad's own tools say how to ask over TLS, and as whom.
func TestEnvironment(t *testing.T) {
	a, _ := newAPI(t)
	var asked atomic.Value // as whom
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		asked.Store(name + "/" + password)
		if name == "nobody" {
			http.Error(w, "not you", http.StatusForbidden)
			return
		}
		a.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)

	dir := t.TempDir()
	write(t, filepath.Join(dir, "cas", "nomad.pem"), "CERTIFICATE", s.Certificate().Raw)
	write(t, filepath.Join(dir, "cas", "note"), "NOTE", nil)
	clientFiles(t, dir)
	t.Setenv("NOMAD_CLIENT_CERT", filepath.Join(dir, "cert.pem"))
	t.Setenv("NOMAD_CLIENT_KEY", filepath.Join(dir, "key.pem"))
	t.Setenv("NOMAD_TLS_SERVER_NAME", "example.com")
	t.Setenv("NOMAD_HTTP_AUTH", "me:my:secret")
	for variable, path := range map[string]string{"NOMAD_CACERT": filepath.Join(dir, "cas", "nomad.pem"), "NOMAD_CAPATH": filepath.Join(dir, "cas")} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, path)
			n := serving(t, s.URL)
			if got, err := ask(n, "redis.default.service.nomad.", dns.TypeAAAA); err != nil || !strings.HasPrefix(got, "NOERROR redis") || asked.Load() != "me/my:secret" {
				t.Errorf("%s %v, as %s", got, err, asked.Load())
			}
		})
	}
	t.Setenv("NOMAD_CAPATH", dir) // whose files have no CA
	os.Remove(filepath.Join(dir, "cert.pem"))
	t.Setenv("NOMAD_CLIENT_CERT", "")
	if _, err := newAgent(s.URL, ""); err == nil || !strings.Contains(err.Error(), "no file has a certificate") {
		t.Error(err)
	}
	t.Setenv("NOMAD_CAPATH", "")
	t.Setenv("NOMAD_SKIP_VERIFY", "true")
	u := strings.Replace(s.URL, "https://", "https://nobody:x@", 1)
	if _, err := ask(serving(t, u), "redis.default.service.nomad.", dns.TypeA); err == nil || strings.Contains(err.Error(), ":x@") {
		t.Errorf("the error is %v: none may tell the password", err)
	}
}

func write(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// clientFiles writes cert.pem and key.pem of a client.
func clientFiles(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dns"}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", cert)
	write(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", der)
}
