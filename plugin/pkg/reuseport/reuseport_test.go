//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package reuseport

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

func TestListenTwice(t *testing.T) {
	first, err := Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := Listen("tcp", first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	// What the first no longer takes, the second does.
	first.Close()
	defer second.Close()
	client, err := net.DialTimeout("tcp", second.Addr().String(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := second.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
}

func TestListenPacketTwice(t *testing.T) {
	first, err := ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := ListenPacket("udp", first.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()

	first.Close()
	client, err := net.Dial("udp", second.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("query")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if err := second.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := second.ReadFrom(b); err != nil || string(b[:n]) != "query" {
		t.Errorf("got %q, %v", b[:n], err)
	}
}

func TestListenErrors(t *testing.T) {
	if l, err := Listen("tcp", "192.0.2.1:0"); err == nil {
		l.Close()
		t.Error("listening on an address of another host succeeded")
	}
	if p, err := ListenPacket("udp", "example"); err == nil {
		p.Close()
		t.Error("listening without a port succeeded")
	}
}

// broken is a socket whose options cannot be set.
type broken struct{ syscall.RawConn }

func (broken) Control(func(uintptr)) error { return errors.New("no options today") }

func TestFailureOnlyWarns(t *testing.T) {
	out := logtest.Capture(t)

	if err := control("udp4", "127.0.0.1:53", broken{}); err != nil {
		t.Errorf("got %v, want a warning only", err)
	}
	want := "[WARNING] Failed to set SO_REUSEPORT on the udp4 socket for 127.0.0.1:53: no options today\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
