package zonekeys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// write writes a pair of files that is said to be a zone's, and returns its name.
func write(t *testing.T, dir, owner string) string {
	t.Helper()
	return writeKey(t, dir, owner, 257)
}

func writeKey(t *testing.T, dir, owner string, flags uint16) string {
	t.Helper()
	public := &dns.DNSKEY{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: flags, Protocol: 3, Algorithm: dns.ED25519}
	private, err := public.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fmt.Sprintf("K%s+015+%05d", owner, public.KeyTag()))
	for _, f := range []struct{ suffix, text string }{{".key", public.String() + "\n"}, {".private", public.PrivateKeyString(private)}} {
		if err := os.WriteFile(name+f.suffix, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// A key of another zone signs all the same, as zones may share one, but not without a word.
func TestKeysOfOtherZones(t *testing.T) {
	dir := t.TempDir()
	var s Source
	for _, owner := range []string{"Example.Org.", "example.net."} {
		if err := s.Add("file", write(t, dir, owner)); err != nil {
			t.Fatal(err)
		}
	}
	for origin, want := range map[string]string{
		"example.org.": " of example.net. is to sign example.org.",
		"example.net.": " of example.org. is to sign example.net.",
	} {
		var said []string
		pairs, err := s.For(origin, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		if err != nil || len(pairs) != 2 || len(said) != 1 || !strings.HasSuffix(said[0], want) {
			t.Errorf("%s: %d keys, %q, %v", origin, len(pairs), said, err)
		}
	}
}

// BIND escapes names of files, and names of owners in another way than others do.
func TestOddNames(t *testing.T) {
	for origin, files := range map[string]string{
		"0/26.2.0.192.in-addr.arpa.": "K0%2F26.2.0.192.in-addr.arpa.",
		`\195\164.sp\ ace.org.`:      "K%C3%A4.sp%20ace.org.",
		`dec\.imal-_x.org.`:          "Kdec%2Eimal-_x.org.",
		"example.org.":               "Kexample.org.",
		".":                          "K.",
	} {
		dir, from := t.TempDir(), t.TempDir()
		key := write(t, from, strings.ReplaceAll(strings.ReplaceAll(origin, `\ `, `\032`), "/", `\047`))
		named := filepath.Join(dir, files+"+015+00001")
		for _, suffix := range []string{".key", ".private"} {
			if err := os.Rename(key+suffix, named+suffix); err != nil {
				t.Fatal(err)
			}
		}
		var file, folder Source
		if err := errors.Join(file.Add("file", named), folder.Add("directory", dir)); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Source{&file, &folder} {
			var said []string
			pairs, err := s.For(origin, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
			if err != nil || len(pairs) != 1 || len(said) > 0 {
				t.Errorf("%s: %d keys, %q, %v", origin, len(pairs), said, err)
			}
		}
	}
}

// A revoked key is taken, as it tells validators of its end (RFC 5011), but not without a word.
func TestRevokedKeys(t *testing.T) {
	dir := t.TempDir()
	for _, flags := range []uint16{257, 385} {
		writeKey(t, dir, "example.org.", flags)
	}
	var s Source
	if err := s.Add("directory", dir); err != nil {
		t.Fatal(err)
	}
	var said []string
	pairs, err := s.For("example.org.", func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil || len(pairs) != 2 || len(said) != 1 || !strings.HasSuffix(said[0], " of example.org. is revoked: the zone needs another one") {
		t.Errorf("%d keys, %q, %v", len(pairs), said, err)
	}
}

// A key that is named twice, with or without extension, and lies in the folder, too, is one: it would sign all twice,
// and a zone that is signed by it would never be as it should be.
func TestKeyNamedTwice(t *testing.T) {
	dir := t.TempDir()
	name := write(t, dir, "example.org.")
	write(t, dir, "example.org.")
	var s Source
	for _, n := range []string{name, name + ".key"} {
		if err := s.Add("file", n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Add("directory", dir); err != nil {
		t.Fatal(err)
	}
	if pairs, err := s.For("example.org.", t.Errorf); err != nil || len(pairs) != 2 {
		t.Errorf("%d keys, %v", len(pairs), err)
	}
}

// Files that were written on, or went by way of, a system with other line ends are read all the same.
func TestLinesEndWithCRLF(t *testing.T) {
	name := write(t, t.TempDir(), "example.org.")
	for _, suffix := range []string{".key", ".private"} {
		text, err := os.ReadFile(name + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name+suffix, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(name); err != nil {
		t.Error(err)
	}
}
