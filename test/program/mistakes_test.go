package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// update has the test write down what the program says now.
var update = os.Getenv("UPDATE") != ""

// mistake is one of the list.
type mistake struct{ name, corefile, says string }

// readMistakes takes the list apart: a head, and mistakes.
func readMistakes(t *testing.T, path string) (head string, all []mistake) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n-- ")
	for part := range strings.SplitSeq(rest, "\n-- ") {
		name, body, _ := strings.Cut(part, " --\n")
		if name != "says" {
			all = append(all, mistake{name: name, corefile: body + "\n"})
			continue
		}
		all[len(all)-1].says = strings.TrimSuffix(body, "\n")
	}
	return head + "\n", all
}

var (
	placeInText = regexp.MustCompile(`Corefile:\d+ - `)
	interfaces  = regexp.MustCompile(`(interface name: "[^"]*") \(allowed: [^)]*\)`)
)

// A mistake is told with its place, what stood there and what to do about it; the list has been read line by line.
func TestMistakes(t *testing.T) {
	const path = "testdata/mistakes.txt"
	head, all := readMistakes(t, path)
	folder := t.TempDir()
	prepareMistakes(t, folder)
	if len(all) < 100 {
		t.Errorf("there are only %d", len(all))
	}
	for i, m := range all {
		write(t, filepath.Join(folder, "Corefile"), m.corefile)
		out, errs, status := run(t, folder, "", "validate")
		got := strings.TrimSpace(strings.ReplaceAll(out+errs, folder, "FOLDER"))
		got = interfaces.ReplaceAllString(got, "$1 (allowed: INTERFACES)")
		if !placeInText.MatchString(got) || status == 0 != strings.Contains(got, "valid, with warnings") {
			t.Errorf("%s: status %d, no place in %q", m.name, status, got)
		}
		if got != m.says && !update {
			t.Errorf("%s:\n got %s\nwant %s", m.name, got, m.says)
		}
		all[i].says = got
	}
	if !update {
		return
	}
	var b strings.Builder
	b.WriteString(head)
	for _, m := range all {
		b.WriteString("-- " + m.name + " --\n" + m.corefile + "-- says --\n" + m.says + "\n")
	}
	write(t, path, b.String())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// prepareMistakes puts the files into folder that the list names.
func prepareMistakes(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{"good", "other"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		write(t, filepath.Join(folder, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	}
	write(t, filepath.Join(folder, "junk.pem"), "junk\n")
	write(t, filepath.Join(folder, "db.bad"), "@ 3600 IN SOA ns. h. 1 2 3 4 5\n@ IN NS ns.example.org.\nwww IN A 192.0.2.300\n")
}
