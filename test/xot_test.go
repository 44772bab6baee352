package test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"
)

// Zone transfer over TLS (RFC 9103) with other servers, both ways: the certificate has to be good, and a notification tells of a change.

// xotPeer is a server that transfers zones over TLS.
type xotPeer struct {
	name, debian string
	since        string // the first version that does
	args         []string
	primary      string // its configuration as a primary, and as a secondary
	secondary    string
}

// xotSetup is what configurations are made of.
type xotSetup struct {
	dir       string // of the certificates ca.pem, cert.pem and key.pem, and of the peer's files
	port      int    // of the peer, for plain DNS
	tls       int    // of the primary, for DNS over TLS
	secondary int    // of the secondary, for notifications
}

func (s *xotSetup) fill(conf string) string {
	return strings.NewReplacer("DIR", s.dir, "PORT", fmt.Sprint(s.port), "TLS", fmt.Sprint(s.tls), "NOTIFIED", fmt.Sprint(s.secondary)).Replace(conf)
}

const namedOptions = `options {
	directory "DIR"; pid-file "DIR/pid"; session-keyfile "DIR/session.key";
	listen-on port PORT { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; dnssec-validation no; notify-delay 0;
	MORE
};
controls { };
`

var xotPeers = []xotPeer{
	{
		name: "named", debian: "bind9", since: "9.18", args: []string{"-g", "-n", "1", "-c"},
		primary: `tls own { cert-file "DIR/cert.pem"; key-file "DIR/key.pem"; };
` + strings.Replace(namedOptions, "MORE", `listen-on port TLS tls own { 127.0.0.1; };
	allow-transfer port TLS transport tls { any; };
	notify explicit; also-notify { 127.0.0.1 port NOTIFIED; };`, 1) + `zone "example.org" { type primary; file "DIR/db"; };
`,
		secondary: `tls theirs { ca-file "DIR/ca.pem"; remote-hostname "ns.example.org"; };
` + strings.Replace(namedOptions, "MORE", `notify no;`, 1) + `zone "example.org" { type secondary; file "DIR/copy"; primaries { 127.0.0.1 port TLS tls theirs; }; };
`,
	},
	{
		name: "knotd", debian: "knot", since: "3.4", args: []string{"-c"},
		primary: `server:
  rundir: "DIR"
  listen: 127.0.0.1@PORT
  listen-tls: 127.0.0.1@TLS
  cert-file: "DIR/cert.pem"
  key-file: "DIR/key.pem"
database:
  storage: "DIR"
remote:
  - id: ours
    address: 127.0.0.1@NOTIFIED
acl:
  - id: all
    address: 127.0.0.1
    action: transfer
zone:
  - domain: example.org
    file: "DIR/db"
    notify: ours
    acl: all
    zonefile-sync: -1
    zonefile-load: difference
    journal-content: changes
`,
		secondary: `server:
  rundir: "DIR"
  listen: 127.0.0.1@PORT
database:
  storage: "DIR"
remote:
  - id: ours
    address: 127.0.0.1@TLS
    tls: on
acl:
  - id: told
    address: 127.0.0.1
    action: notify
zone:
  - domain: example.org
    file: "DIR/copy"
    master: ours
    acl: told
`,
	},
}

// program is the path of the peer's program; the test is skipped if it is not there, or too old.
func (p *xotPeer) program(t *testing.T) string {
	t.Helper()
	path := zonetest.Program(t, p.name, p.debian)
	out, err := exec.Command(path, "-V").CombinedOutput()
	if err != nil {
		t.Fatalf("%s -V: %v\n%s", p.name, err, out)
	}
	if has := versionIn(string(out)); !atLeast(has, p.since) {
		t.Skipf("%s %s is too old for zone transfer over TLS, it takes %s", p.name, has, p.since)
	}
	return path
}

// versionIn is the first word with a digit at its begin, and a dot.
func versionIn(text string) string {
	for _, w := range strings.Fields(text) {
		if w[0] >= '0' && w[0] <= '9' && strings.Contains(w, ".") {
			return w
		}
	}
	return ""
}

// atLeast compares versions by their first two numbers.
func atLeast(has, least string) bool {
	var a, b, c, d int
	fmt.Sscanf(has, "%d.%d", &a, &b)
	fmt.Sscanf(least, "%d.%d", &c, &d)
	return a > c || a == c && b >= d
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]bool{
		"knotd (Knot DNS), version 3.2.6": false, "knotd (Knot DNS), version 3.4.0": true, "Knot DNS 3.10": true, "x 4.0": true, "none": false,
	} {
		if got := atLeast(versionIn(text), "3.4"); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// certificates makes an authority and a certificate for 127.0.0.1 and ns.example.org in dir.
func certificates(t testing.TB, dir string) {
	t.Helper()
	keys := [2]*ecdsa.PrivateKey{}
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "ns.example.org"}, DNSNames: []string{"ns.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	write := func(name, kind string, b []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := x509.CreateCertificate(rand.Reader, ca, ca, &keys[0].PublicKey, keys[0])
	write("ca.pem", "CERTIFICATE", b, err)
	b, err = x509.CreateCertificate(rand.Reader, leaf, ca, &keys[1].PublicKey, keys[0])
	write("cert.pem", "CERTIFICATE", b, err)
	b, err = x509.MarshalPKCS8PrivateKey(keys[1])
	write("key.pem", "PRIVATE KEY", b, err)
}

// newXot is a setup with certificates, and a zone in the file db with the serial 1.
func newXot(t *testing.T) *xotSetup {
	s := &xotSetup{dir: loopback.Folder(t), port: loopback.Port(), tls: loopback.Port(), secondary: loopback.Port()}
	certificates(t, s.dir)
	s.change(t, 1)
	return s
}

// change gives the zone a serial.
func (s *xotSetup) change(t *testing.T, serial int) {
	t.Helper()
	text := fmt.Sprintf("$ORIGIN example.org.\n$TTL 300\n@ SOA ns hostmaster %d 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.%d\n", serial, serial)
	for i := range 2000 {
		text += fmt.Sprintf("host%d TXT \"a text that makes the zone longer than one message, number %d\"\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts the peer.
func (s *xotSetup) run(t *testing.T, path string, args []string, conf string) (reload func()) {
	t.Helper()
	file := filepath.Join(s.dir, "conf")
	if err := os.WriteFile(file, []byte(s.fill(conf)), 0o600); err != nil {
		t.Fatal(err)
	}
	return zonetest.Run(t, s.dir, path, append(args[:len(args):len(args)], file)...)
}

// Another server fetches our zone over TLS; plain transfers are not to be had.
func TestTransferOverTLSToPeers(t *testing.T) {
	for _, p := range xotPeers {
		t.Run(p.name, func(t *testing.T) {
			path := p.program(t)
			out := captureLog(t)
			s := newXot(t)
			start(t, s.fill("tls://example.org:TLS {\nbind 127.0.0.1\ntls DIR/cert.pem DIR/key.pem\nfile DIR/db example.org {\nreload 100ms\n}\ntransfer {\nto 127.0.0.1:PORT\n}\n}\n.:0 {\nbind 127.0.0.1\nwhoami\n}"))
			s.run(t, path, p.args, p.secondary)
			peer := fmt.Sprintf("127.0.0.1:%d", s.port)
			zonetest.Await(t, peer, "example.org.", 1)
			s.change(t, 2)
			zonetest.Await(t, peer, "example.org.", 2)
			if !strings.Contains(out.String(), "ransfer of ") {
				t.Errorf("no transfer in the log:\n%s", out)
			}
		})
	}
}

// We fetch another server's zone over TLS, which is the only way to have it.
func TestTransferOverTLSFromPeers(t *testing.T) {
	for _, p := range xotPeers {
		t.Run(p.name, func(t *testing.T) {
			path := p.program(t)
			quiet()
			s := newXot(t)
			reload := s.run(t, path, p.args, p.primary)
			zonetest.Await(t, fmt.Sprintf("127.0.0.1:%d", s.port), "example.org.", 1)
			start(t, s.fill("example.org:NOTIFIED {\nbind 127.0.0.1\nsecondary {\ntransfer from tls://127.0.0.1:TLS\ntls DIR/ca.pem\n}\n}"))
			ours := fmt.Sprintf("127.0.0.1:%d", s.secondary)
			zonetest.Await(t, ours, "example.org.", 1)
			s.change(t, 2)
			reload()
			zonetest.Await(t, ours, "example.org.", 2)
		})
	}
}
