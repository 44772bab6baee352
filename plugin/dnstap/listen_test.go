package dnstap

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
)

// Who takes over listens beside the one before, and stays when that ends; nobody else does.
func TestTakeOver(t *testing.T) {
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(loopback.Folder(t), "tap.sock")} {
		first, err := listen(network, addr, false)
		if err != nil {
			t.Fatal(err)
		}
		addr = first.Addr().String()
		if l, err := listen(network, addr, false); err == nil {
			l.Close()
			t.Errorf("%s: somebody else listens, too", network)
		}
		second, err := listen(network, addr, true)
		if err != nil {
			first.Close()
			t.Errorf("%s: %v", network, err)
			continue
		}
		first.Close()
		conn, err := net.Dial(network, addr)
		if err != nil {
			t.Errorf("%s: after the takeover: %v", network, err)
		} else {
			conn.Close()
		}
		second.Close()
		if conn, err := net.Dial(network, addr); err == nil {
			conn.Close()
			t.Errorf("%s: somebody listens at the end", network)
		}
	}
}

// Who connects and is no collector does not fill the log.
func TestStrangePeers(t *testing.T) {
	addr, warned := filepath.Join(loopback.Folder(t), "tap.sock"), new(warnings)
	h, err := openHub("one", "unix", addr, nil, "", warned)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 100 {
		conn, err := net.Dial("unix", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		conn.Close()
	}
	h.release()
	seconds := int(time.Since(began)/time.Second) + 2
	if n := len(warned.all); n == 0 || n > 10*seconds {
		t.Errorf("%d lines", n)
	}
}

// A socket whose file was taken away is there again after a reload; who was connected stays so.
func TestSocketIsMadeAgain(t *testing.T) {
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	h, err := openHub("one", "unix", addr, nil, "", new(warnings))
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	connect := func(peers int) {
		t.Helper()
		conn, err := net.Dial("unix", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		go new(reader).read(conn)
		for end := time.Now().Add(5 * time.Second); len(*h.peers.Load()) < peers; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d peers", len(*h.peers.Load()))
			}
		}
	}
	connect(1)
	if err := os.Remove(addr); err != nil {
		t.Fatal(err)
	}
	again, err := openHub("two", "unix", addr, nil, "", new(warnings))
	if err != nil || again != h {
		t.Fatal(err)
	}
	defer again.release()
	connect(2)
}

// In a reload a hub with other certificates listens where the one before it does.
func TestOtherCertificates(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	probe.Close()
	old, err := openHub("one", "tcp", addr, nil, "old.pem", new(warnings))
	if err != nil {
		t.Fatal(err)
	}
	next, err := openHub("two", "tcp", addr, nil, "new.pem", new(warnings))
	old.release()
	if err != nil {
		t.Fatal(err)
	}
	defer next.release()
	// Of one instance, two that are not alike do not share the port: collectors would come to either.
	if other, err := openHub("two", "tcp", addr, nil, "third.pem", new(warnings)); err == nil {
		other.release()
		t.Error("two listeners of one instance have the address")
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// A reload reads the certificate again, also where its files are called as before: they may have been renewed in place.
func TestRenewedCertificate(t *testing.T) {
	dir, renewed := t.TempDir(), ""
	s := settings{listen: true, network: "tcp", addr: loopback.Addr(), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	s.socket = "tls://" + s.addr
	for range 2 {
		from, err := test.WritePEMFiles(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"cert.pem", "key.pem"} {
			text, err := os.ReadFile(filepath.Join(from, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "cert.pem" {
				block, _ := pem.Decode(text)
				renewed = string(block.Bytes)
			}
		}
		tapper := new(Dnstap)
		if err := s.serve(caddy.NewTestController("dns", ""), tapper); err != nil {
			t.Fatal(err)
		}
		defer tapper.sink.(*hub).release()
	}
	conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is compared below
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().PeerCertificates[0].Raw; string(got) != renewed {
		t.Error("the certificate is the former one")
	}
}

// A reload that fails, whose options for a socket without TLS are others, leaves the socket as it was.
func TestFailedReload(t *testing.T) {
	addr := filepath.Join(loopback.Folder(t), "tap.sock")
	serve := func(skipVerify bool) *hub {
		t.Helper()
		tapper := new(Dnstap)
		s := settings{listen: true, socket: addr, network: "unix", addr: addr, skipVerify: skipVerify}
		if err := s.serve(caddy.NewTestController("dns", ""), tapper); err != nil {
			t.Fatal(err)
		}
		return tapper.sink.(*hub)
	}
	running := serve(false)
	defer running.release()
	serve(true).release()
	conn, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Who connects and says nothing, or a word now and then, is let go when a handshake has had its time, with TLS as without.
func TestSilentPeers(t *testing.T) {
	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	secure := settings{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	certificates, err := secure.certificates()
	if err != nil {
		t.Fatal(err)
	}
	accepts := "\x00\x00\x00\x00\x00\x00\x01\xF8\x00\x00\x00\x01" // the begin of a long ACCEPT
	for name, tc := range map[string]struct {
		tls  *tls.Config
		says string
	}{
		"silent": {}, "silent, with TLS": {tls: certificates}, "slow": {says: accepts + strings.Repeat("\x00", 400)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := filepath.Join(loopback.Folder(t), "tap.sock")
			h, err := openHub(t, "unix", addr, tc.tls, "", new(warnings))
			if err != nil {
				t.Fatal(err)
			}
			defer h.release()
			conn, err := net.Dial("unix", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() {
				for i := range tc.says {
					if _, err := io.WriteString(conn, tc.says[i:i+1]); err != nil {
						return
					}
					time.Sleep(handshakeTime / 20)
				}
			}()
			conn.SetReadDeadline(time.Now().Add(4 * handshakeTime))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection is still there")
			}
		})
	}
}
