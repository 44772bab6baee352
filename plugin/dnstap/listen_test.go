package dnstap

import (
	"net"
	"path/filepath"
	"testing"
)

// Who takes over listens beside the one before, and stays when that ends; nobody else does.
func TestTakeOver(t *testing.T) {
	for network, addr := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "tap.sock")} {
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

// In a reload a hub with other certificates listens where the one before it does.
func TestOtherCertificates(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	probe.Close()
	old, err := openHub("tcp", addr, nil, "old.pem", new(warnings))
	if err != nil {
		t.Fatal(err)
	}
	next, err := openHub("tcp", addr, nil, "new.pem", new(warnings))
	old.release()
	if err != nil {
		t.Fatal(err)
	}
	defer next.release()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
