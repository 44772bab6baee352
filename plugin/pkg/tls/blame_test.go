package tls_test

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/tls"
)

// Who has a key of the right certificate is not sent to look for another one.
func TestFilesToBlame(t *testing.T) {
	dir, other := files(t), files(t)
	read := func(dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cert, key := read(dir, "cert.pem"), read(dir, "key.pem")
	pkcs8 := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("secret")})
	rfc1421 := pem.EncodeToMemory(&pem.Block{
		Type: "EC PRIVATE KEY", Bytes: []byte("secret"),
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00112233445566778899AABBCCDDEEFF"},
	})
	for name, tc := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"encrypted, PKCS #8":  {cert, pkcs8, "the key in KEY is encrypted"},
		"encrypted, RFC 1421": {cert, rfc1421, "the key in KEY is encrypted"},
		"wrong order":         {append(read(other, "cert.pem"), cert...), key, "the certificate of the key in KEY has to be the first one in CERT"},
		"other key":           {append(read(other, "cert.pem"), read(other, "cert.pem")...), key, "are they of one pair?"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			certPath, keyPath := filepath.Join(dir, "c"), filepath.Join(dir, "k")
			for path, b := range map[string][]byte{certPath: tc.cert, keyPath: tc.key} {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want := strings.NewReplacer("KEY", keyPath, "CERT", certPath).Replace(tc.want)
			if _, err := tls.NewTLSConfig(certPath, keyPath, ""); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
