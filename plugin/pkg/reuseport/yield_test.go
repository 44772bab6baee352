package reuseport

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// A listener that yields gets no new connections, and the next one at its address all of them; alone it gets them as before.
func TestYield(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems cannot be told")
	}
	listen := func(addr string) *net.TCPListener {
		l, err := Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.(*net.TCPListener)
	}
	first := listen("127.0.0.1:0")
	addr := first.Addr().String()
	second := listen(addr)
	dial := func(n int) {
		for range n {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}
	}
	accepted := func(l *net.TCPListener) (n int) {
		l.SetDeadline(time.Now().Add(50 * time.Millisecond)) // who has connected stands in the queue
		for {
			c, err := l.Accept()
			if err != nil {
				return n
			}
			c.Close()
			n++
		}
	}
	if !Yield(first) {
		t.Fatal("the system was not told")
	}
	if dial(40); accepted(first) != 0 {
		t.Error("who yields gets connections")
	}
	if n := accepted(second); n != 40 {
		t.Errorf("the next one gets %d of 40 connections", n)
	}
	first.Close()
	if dial(40); accepted(second) != 40 {
		t.Error("who is left alone does not get all connections")
	}
	if p, _ := net.Pipe(); Yield(pipeListener{p}) {
		t.Error("what is no socket was told")
	}
}

// pipeListener is a listener without a socket.
type pipeListener struct{ net.Conn }

func (pipeListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (pipeListener) Addr() net.Addr            { return nil }
