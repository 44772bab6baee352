package tls

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/test"
)

// pemFiles are a certificate, its key and its CA in files of their own.
func pemFiles(t *testing.T) []string {
	t.Helper()
	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
}

// put puts the content of the file from into the place of the file to, as a renewal does.
func put(t *testing.T, to, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// listener serves TLS with c: it shakes hands and says hello.
func listener(t *testing.T, c *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				io.WriteString(conn, "hello")
				conn.Close()
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

// greeted shakes hands with the server, showing cert if it is not nil, and returns the server's certificate.
func greeted(t *testing.T, addr string, cert *tls.Certificate) (*x509.Certificate, error) {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true}
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", addr, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.ReadAll(conn); err != nil { // TLS 1.3 refuses a client's certificate after its handshake
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

func leaf(t *testing.T, certFile, keyFile string) *tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestCertificateFollowsItsFiles(t *testing.T) {
	out := logtest.Capture(t)
	mine, other := pemFiles(t), pemFiles(t)
	first, second := leaf(t, mine[0], mine[1]), leaf(t, other[0], other[1])
	f, err := newFiles(mine[:2], tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	addr := listener(t, f.config())
	shows := func(want *tls.Certificate) {
		t.Helper()
		got, err := greeted(t, addr, nil)
		if err != nil || !got.Equal(want.Leaf) {
			t.Errorf("another certificate is shown (%v)", err)
		}
	}
	shows(first)
	f.refresh()
	if out.String() != "" {
		t.Errorf("nothing changed, but %q", out)
	}

	put(t, mine[0], other[0]) // the key does not fit
	f.refresh()
	f.refresh()
	shows(first)
	if n := strings.Count(out.String(), "[WARNING] plugin/tls: Keeping the certificate in use"); n != 1 {
		t.Errorf("%d warnings: %s", n, out)
	}

	put(t, mine[1], other[1])
	f.refresh()
	shows(second)
	if !strings.Contains(out.String(), "was read again: serial number 2, valid until ") {
		t.Errorf("log: %s", out)
	}

	if err := os.Remove(mine[0]); err != nil {
		t.Fatal(err)
	}
	f.refresh()
	shows(second)
}

// TestFilesThatCannotBeRead has a key that becomes good without any other stamp, as one whose owner is changed after it
// was put there: for the test, by its content.
func TestFilesThatCannotBeRead(t *testing.T) {
	out := logtest.Capture(t)
	mine, other := pemFiles(t), pemFiles(t)
	f, err := newFiles(mine[:2], tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(other[1])
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	write := func(text []byte) {
		t.Helper()
		if err := errors.Join(os.WriteFile(mine[1], text, 0o600), os.Chtimes(mine[1], at, at)); err != nil {
			t.Fatal(err)
		}
		f.refresh()
	}
	put(t, mine[0], other[0])
	write(bytes.Repeat([]byte("x"), len(key)))
	f.refresh()
	write(key)
	if !f.live.Load().cert.Leaf.Equal(leaf(t, other[0], other[1]).Leaf) {
		t.Error("the new certificate is not used")
	}
	if n := strings.Count(out.String(), "Keeping the certificate in use"); n != 1 {
		t.Errorf("%d warnings: %s", n, out)
	}
}

func TestWatching(t *testing.T) {
	logtest.Capture(t)
	mine, other := pemFiles(t), pemFiles(t)
	f, err := newFiles(mine[:2], tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	f.start(5 * time.Millisecond)
	defer f.stop()
	want := leaf(t, other[0], other[1]).Leaf
	put(t, mine[0], other[0])
	put(t, mine[1], other[1])
	for end := time.Now().Add(5 * time.Second); !f.live.Load().cert.Leaf.Equal(want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new certificate is not used")
		}
	}
}

// Of CAs that are still being written the first ones would be a file, too: clients of the others would be refused until
// the next look.
func TestWaitsForTheRest(t *testing.T) {
	mine, other := pemFiles(t), pemFiles(t)
	f, err := newFiles(mine, tls.RequireAndVerifyClientCert)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what  string
		age   time.Duration
		waits bool
	}{{"as it was", 0, false}, {"changed just now", 0, true}, {"changed a while ago", time.Minute, false}} {
		if tc.what != "as it was" {
			put(t, mine[2], other[2])
			if at := time.Now().Add(-tc.age); os.Chtimes(mine[2], at, at) != nil {
				t.Fatal("its time")
			}
		}
		if again := f.unsettled(time.Hour); again > 0 != tc.waits || again > stamp.Quiet {
			t.Errorf("%s: read after %v", tc.what, again)
		}
	}
	f.settles = stamp.Settling{}
	f.start(5 * time.Millisecond)
	eventually.Holds(t, "it is read in the end", func() bool { return f.live.Load() != f.first })
	f.stop()
	if f.settles == (stamp.Settling{}) {
		t.Error("the file was read without asking whether it may be")
	}
}

// The metric tells of certificates that are in use: not of those of a configuration that has ended, or never began.
func TestShownWhileInUse(t *testing.T) {
	logtest.Capture(t)
	mine := pemFiles(t)
	shows := func() bool { return notAfter.DeleteLabelValues(mine[0]) } // what is there can be taken away
	first, err := newFiles(mine[:2], tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	if shows() {
		t.Error("it is shown before anybody uses it")
	}
	first.start(time.Hour)
	again, err := newFiles(mine[:2], tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	again.start(time.Hour) // a reload
	first.stop()
	first.stop()
	if !shows() {
		t.Error("the end of one configuration has taken it from the other")
	}
	showEnd(mine[0], again.first.cert.Leaf)
	again.stop()
	if shows() {
		t.Error("it is shown, though nobody uses it any more")
	}
}

func TestStopWithoutStart(t *testing.T) {
	mine := pemFiles(t)
	f, err := newFiles(mine, tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.stop()
}

func TestClientCAsFollowTheirFile(t *testing.T) {
	logtest.Capture(t)
	mine, other := pemFiles(t), pemFiles(t)
	old, renewed := leaf(t, mine[0], mine[1]), leaf(t, other[0], other[1])
	f, err := newFiles(mine, tls.RequireAndVerifyClientCert)
	if err != nil {
		t.Fatal(err)
	}
	config, secrets := f.config(), new(logtest.Output)
	config.KeyLogWriter = secrets // as setup does it
	addr := listener(t, config)
	let := func(cert *tls.Certificate, want bool) {
		t.Helper()
		before := len(secrets.String())
		if _, err := greeted(t, addr, cert); (err == nil) != want {
			t.Errorf("got %v, want to get in: %t", err, want)
		}
		if len(secrets.String()) == before {
			t.Error("nothing was added to the key log")
		}
	}
	let(old, true)
	let(renewed, false)
	let(nil, false)
	put(t, mine[2], other[2])
	f.refresh()
	let(old, false)
	let(renewed, true)
	let(nil, false)
}

func TestClientAuth(t *testing.T) {
	mine, strange := pemFiles(t), pemFiles(t)
	good, bad := leaf(t, mine[0], mine[1]), leaf(t, strange[0], strange[1])
	for word, want := range map[string][3]bool{ // without a certificate, with one of the CA, with another one
		"nocert":             {true, true, true},
		"request":            {true, true, true},
		"require":            {false, true, true},
		"verify_if_given":    {true, true, false},
		"require_and_verify": {false, true, false},
	} {
		f, err := newFiles(mine, clientAuth[word])
		if err != nil {
			t.Fatal(err)
		}
		addr := listener(t, f.config())
		for i, cert := range []*tls.Certificate{nil, good, bad} {
			if _, err := greeted(t, addr, cert); (err == nil) != want[i] {
				t.Errorf("%s, case %d: %v", word, i, err)
			}
		}
	}
}

func TestKeyLog(t *testing.T) {
	out := logtest.Capture(t)
	k := &keyLog{path: filepath.Join(t.TempDir(), "keys")}
	if n, err := k.Write([]byte("too early\n")); n != 10 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	for range 2 {
		if err := k.open(); err != nil {
			t.Fatal(err)
		}
		k.Write([]byte("a line\n"))
		if err := k.close(); err != nil {
			t.Fatal(err)
		}
	}
	k.Write([]byte("too late\n"))
	k.close()
	text, err := os.ReadFile(k.path)
	if string(text) != "a line\na line\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if info, _ := os.Stat(k.path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if !strings.Contains(out.String(), `[WARNING] plugin/tls: Writing TLS Key Log to "`+k.path+`"`) {
		t.Errorf("log: %s", out)
	}
	if err := (&keyLog{path: t.TempDir()}).open(); err == nil {
		t.Error("a folder was opened")
	}
}

// ended writes a certificate that has ended into the files.
func ended(t *testing.T, cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(1, 0), NotAfter: time.Unix(1e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: own}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that has ended, or has not begun, is told once, until there is another one.
func TestEndedCertificate(t *testing.T) {
	out := logtest.Capture(t)
	dir, valid := t.TempDir(), pemFiles(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ended(t, cert, key)
	f, err := newFiles([]string{cert, key}, tls.NoClientCert)
	if err != nil {
		t.Fatal(err)
	}
	f.start(time.Millisecond)
	defer f.stop()
	const told = "is valid from 1970-01-01T00:00:01Z until 2001-09-09T01:46:40Z only"
	time.Sleep(50 * time.Millisecond) // in which it is looked at many times
	if n := strings.Count(out.String(), "[WARNING] plugin/tls: Certificate "+cert+" "+told); n != 1 {
		t.Errorf("told %d times: %s", n, out)
	}
	put(t, key, valid[1])
	put(t, cert, valid[0])
	eventually.Holds(t, "the new one is read", func() bool { return strings.Contains(out.String(), "was read again") })
	f.stop()
	if n := strings.Count(out.String(), "is valid from"); n != 1 {
		t.Errorf("told %d times: %s", n, out)
	}
	f.tellEnd(f.live.Load().cert.Leaf.NotBefore)
	if n := strings.Count(out.String(), "is valid from"); n != 2 {
		t.Errorf("one that has not begun: told %d times: %s", n, out)
	}
}
