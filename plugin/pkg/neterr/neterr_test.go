package neterr

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// TestIs: what the system says of sockets is told apart, whatever numbers it has for that.
func TestIs(t *testing.T) {
	packets, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	packets.Close()
	defer l.Close()
	for name, c := range map[string]struct {
		want []syscall.Errno
		do   func() error
	}{
		"nobody listens": {[]syscall.Errno{syscall.ECONNREFUSED}, func() error {
			other, free, err := loopback.Listen()
			if err != nil {
				return err
			}
			other.Close()
			free.Close()
			_, err = net.Dial("tcp", free.Addr().String())
			return err
		}},
		"the peer resets": {[]syscall.Errno{syscall.ECONNRESET, syscall.EPIPE}, func() error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			defer c.Close()
			peer, err := l.Accept()
			if err != nil {
				return err
			}
			peer.(*net.TCPConn).SetLinger(0)
			peer.Close()
			for err == nil { // as long as its system takes what nobody will read
				_, err = c.Write(make([]byte, 1000))
			}
			return err
		}},
		"somebody listens": {[]syscall.Errno{syscall.EADDRINUSE}, func() error {
			_, err := net.Listen("tcp", l.Addr().String())
			return err
		}},
		"another machine's": {[]syscall.Errno{syscall.EADDRNOTAVAIL}, func() error {
			_, err := net.Listen("tcp", "192.0.2.1:0")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			if !Is(err, append(c.want, syscall.EHOSTUNREACH)...) {
				t.Errorf("%v is not known", err)
			}
			if Is(err, syscall.EHOSTUNREACH) || Is(err) {
				t.Errorf("%v is another one, too", err)
			}
		})
	}
	if Is(nil, syscall.EPIPE) || Is(io.EOF, syscall.EPIPE) {
		t.Error("what is no error of a socket is one")
	}
	if err := errors.Join(io.EOF, os.NewSyscallError("write", syscall.EPIPE)); !Is(err, syscall.EPIPE) {
		t.Errorf("%v is not known", err)
	}
}
