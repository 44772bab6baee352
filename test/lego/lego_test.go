// Package lego has an ACME client of the field prove names by DNS-01 (RFC 8555 §8.4): lego, which Traefik, Caddy and
// others are made with. It is a module of its own, so that the server does not depend on it.
package lego

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-acme/lego/v4/providers/dns/rfc2136"
	"github.com/miekg/dns"
)

const (
	key    = "acme."
	secret = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	name   = "_acme-challenge.www.example.org."
)

// serve builds the server, or takes the one of COREDNS, and serves a zone that lego's key may prove names of.
func serve(t *testing.T) (addr string) {
	t.Helper()
	dir := t.TempDir()
	server := os.Getenv("COREDNS")
	if server == "" {
		server = filepath.Join(dir, "coredns")
		build := exec.Command("go", "build", "-o", server, ".")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = c.LocalAddr().String()
	_, port, _ := net.SplitHostPort(addr)
	c.Close()
	corefile := fmt.Sprintf(`example.org:%s {
		bind 127.0.0.1
		tsig {
			secret %s %s
		}
		dynupdate {
			file db
			database zone.db
			allow %s %s TXT
		}
	}`, port, key, secret, key, name)
	seed := "$TTL 300\nexample.org. SOA ns1.example.org. h.example.org. 1 7200 3600 1209600 60\nexample.org. NS ns1.example.org.\n"
	for file, text := range map[string]string{"Corefile": corefile, "db": seed} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(server)
	run.Dir, run.Stdout, run.Stderr = dir, os.Stdout, os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Process.Kill()
		run.Wait()
	})
	for range 200 {
		if _, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA), addr); err == nil {
			return addr
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not answer")
	return ""
}

// TestChallenges: a proof comes and goes, a later one stands in place of the one before, as lego wants it, whose removal
// does nothing then; a name that the key may not change is an error.
func TestChallenges(t *testing.T) {
	addr := serve(t)
	config := rfc2136.NewDefaultConfig()
	config.Nameserver, config.TSIGKey, config.TSIGSecret, config.TSIGAlgorithm = addr, key, secret, dns.HmacSHA256
	provider, err := rfc2136.NewDNSProviderConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	proofs := func() int {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeTXT), addr)
		if err != nil {
			t.Fatal(err)
		}
		return len(m.Answer)
	}
	for _, step := range []struct {
		do    func(domain, token, keyAuth string) error
		token string
		want  int
	}{{provider.Present, "one", 1}, {provider.Present, "two", 1}, {provider.CleanUp, "one", 1}, {provider.CleanUp, "two", 0}} {
		if err := step.do("www.example.org", "", step.token); err != nil || proofs() != step.want {
			t.Errorf("%s: %v, %d proofs, want %d", step.token, err, proofs(), step.want)
		}
	}
	if err := provider.Present("other.example.org", "", "x"); err == nil {
		t.Error("a name that the key may not change was proved")
	}
}
