package systemd

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

func TestAt(t *testing.T) {
	for _, tc := range []struct {
		bound, addr string
		want        bool
	}{
		{"[::]:53", ":53", true},
		{"0.0.0.0:53", ":53", true},
		{"[::]:53", ":54", false},
		{"127.0.0.1:53", "127.0.0.1:53", true},
		{"[::ffff:127.0.0.1]:53", "127.0.0.1:53", true},
		{"127.0.0.1:53", ":53", false},
		{"[::]:53", "127.0.0.1:53", false},
		{"[::1]:53", "[::1]:53", true},
		{"127.0.0.1:53", "localhost:53", false},
		{"127.0.0.1:53", "127.0.0.1", false},
	} {
		bound, err := net.ResolveUDPAddr("udp", tc.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := at(bound, tc.addr); got != tc.want {
			t.Errorf("a socket at %s is for %s: %v", tc.bound, tc.addr, got)
		}
	}
}

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready(); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	if err := Ready(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	n, err := l.Read(b)
	if got := string(b[:n]); err != nil || !strings.HasPrefix(got, "READY=1\nMAINPID=") {
		t.Errorf("the manager got %q, %v", got, err)
	}
	l.Close()
	if err := Ready(); err == nil || !strings.Contains(err.Error(), "READY=1") {
		t.Errorf("of a manager that is gone: %v", err)
	}
}
