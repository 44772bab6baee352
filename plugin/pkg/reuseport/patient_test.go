package reuseport

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// Errors that may pass are waited for, and told once; the end of the listener is one.
func TestPatient(t *testing.T) {
	out := logtest.Capture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Patient(loopback.Failing(l, 5, syscall.ENOBUFS))
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	want := "[WARNING] Connections to " + l.Addr().String() + " wait until they can be accepted: accept tcp: no buffer space available\n"
	if got := out.String(); got != want || strings.Count(got, "\n") != 1 {
		t.Errorf("the log has %q, want %q", got, want)
	}
	p.Close()
	if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
