package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/coredns/coredns/core/plugin"

	"github.com/coredns/caddy"
)

func TestCertsAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	if good(dir) {
		t.Error("nothing is good")
	}
	if err := write(dir, 30*24*time.Hour); err != nil || !good(dir) {
		t.Fatalf("made no good certificate: %v", err)
	}
	for name, mode := range map[string]os.FileMode{"cert.pem": 0o644, "ca.pem": 0o644, "key.pem": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode&allowed(t) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := write(dir, time.Hour); err != nil || good(dir) {
		t.Errorf("a certificate that ends soon is good (%v)", err)
	}
	if err := write(filepath.Join(dir, "none"), time.Hour); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// allowed is what the process may give to others of its files (umask).
func allowed(t *testing.T) os.FileMode {
	t.Helper()
	path := filepath.Join(t.TempDir(), "any")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

var ports = regexp.MustCompile(`:(8853|8443|1053|1082)\b`)

// TestTransports starts each of the examples of transports, with a certificate of its own and at any port.
func TestTransports(t *testing.T) {
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "transports", "Corefile.*"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%v, %v", files, err)
	}
	certs := t.TempDir()
	if err := write(certs, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	zone, err := os.ReadFile(filepath.Join(dir, "db.example.org"))
	if err == nil {
		err = os.WriteFile(filepath.Join(certs, "db.example.org"), zone, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	caddy.Quiet, dnsserver.Quiet = true, true
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		conf := strings.ReplaceAll(ports.ReplaceAllString(string(text), ":0"), "root examples", "root "+certs)
		conf = strings.ReplaceAll(conf, "grpc . 127.0.0.1:0", "grpc . 127.0.0.1:8443")
		i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(conf), Filepath: f, ServerTypeName: "dns"})
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		for _, err := range i.ShutdownCallbacks() {
			t.Errorf("%s: %v", f, err)
		}
		i.Stop()
	}
}
