package zonekeys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestOddFiles: a private key of which lines are missing or empty, and one of another algorithm than the public key, is an
// error. None of them ends the process.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	private := map[uint8]string{}
	public := map[uint8]*dns.DNSKEY{}
	for alg, bits := range map[uint8]int{dns.RSASHA256: 1024, dns.ECDSAP256SHA256: 256, dns.ECDSAP384SHA384: 384, dns.ED25519: 256} {
		k := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: 257, Protocol: 3, Algorithm: alg}
		secret, err := k.Generate(bits)
		if err != nil {
			t.Fatal(err)
		}
		private[alg], public[alg] = k.PrivateKeyString(secret), k
	}
	tried := 0
	read := func(name string, k *dns.DNSKEY, text string) {
		t.Helper()
		base := filepath.Join(dir, fmt.Sprint("k", tried))
		tried++
		for ext, content := range map[string]string{".key": k.String() + "\n", ".private": text} {
			if err := os.WriteFile(base+ext, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %v", name, r)
			}
		}()
		if _, err := Read(base); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for alg, text := range private {
		name := dns.AlgorithmToString[alg]
		for other, k := range public {
			if other != alg {
				read(name+" for "+dns.AlgorithmToString[other], k, text)
			}
		}
		if alg != dns.RSASHA256 { // whose keys are those of RSASHA1, too
			sha1 := dns.Copy(public[alg]).(*dns.DNSKEY)
			sha1.Algorithm = dns.RSASHA1
			read(name+" for RSASHA1", sha1, text)
		}
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		for i, line := range lines {
			field, _, _ := strings.Cut(line, ":")
			if needless(field) {
				continue
			}
			read(name+" without "+field, public[alg], strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""))
			read(name+" with an empty "+field, public[alg], strings.Join(lines[:i], "")+field+": \n"+strings.Join(lines[i+1:], ""))
			read(name+" up to "+field, public[alg], strings.Join(lines[:i], ""))
			if i >= 2 {
				read(name+" with zero as "+field, public[alg], strings.Join(lines[:i], "")+field+": AA==\n"+strings.Join(lines[i+1:], ""))
			}
		}
	}
	if tried < 60 {
		t.Errorf("%d files were tried", tried)
	}
}

// needless reports whether a key can be used without a field of its file: all that the public key has, or that can be computed.
func needless(field string) bool {
	switch field {
	case "Modulus", "PublicExponent", "Exponent1", "Exponent2", "Coefficient":
		return true
	}
	return false
}
