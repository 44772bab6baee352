package proxy

import (
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// ended hands on the exchange that has ended.
type ended chan *Exchange

func (c ended) EndExchange(x *Exchange) { c <- x }

// A machine that stood still while a reply came has the clock and the reader awake at one time. The reply counts though
// the clock is the first to look, and how long it lay there is not what the upstream takes.
func TestReplyThatLayThereWhileTheMachineStoodStill(t *testing.T) {
	for _, stream := range []bool{false, true} {
		asked, resume, sent := make(chan bool, 1), make(chan bool), make(chan bool)
		hold := func(q []byte) []byte {
			asked <- true
			<-resume
			return replyTo(q)
		}
		var addr string
		if stream {
			addr = tcpUpstream(t, func(conn net.Conn) {
				for q, err := readFrame(conn); err == nil; q, err = readFrame(conn) {
					conn.Write(frame(hold(q)))
					sent <- true
				}
			})
		} else {
			addr = udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
				send(hold(q))
				sent <- true
			})
		}
		p := proxyTo(t, addr, transport.DNS)
		p.Measure()
		over := make(ended, 1)
		const longAgo = int64(10 * time.Second)
		x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Stream: stream, Timeout: time.Duration(longAgo / 2), Owner: over}
		p.Begin(x)
		<-asked

		e := &p.engine
		e.mu.Lock()                         // both wait for it
		e.catchUp = int64(10 * time.Second) // for a machine that is busy, too
		now := e.now()
		x.sent = now - longAgo
		e.wheel.remove(x)
		e.wheel.add(x, 0, now>>tickBits)
		e.wakeBy(x.sent + int64(x.Timeout))
		time.Sleep(20 * time.Millisecond) // the clock is the first in the queue
		resume <- true
		<-sent
		e.mu.Unlock()

		if <-over; x.Err != nil {
			t.Errorf("stream %v: %v", stream, x.Err)
		}
		if slow := p.Latency().Smooth(); slow > time.Second {
			t.Errorf("stream %v: the upstream is thought to take %s", stream, slow)
		}
	}
}

// What is late, and has no reply, ends all the same.
func TestNoReplyWhileTheMachineStoodStill(t *testing.T) {
	asked := make(chan bool, 1)
	addr := udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) { asked <- true })
	p := proxyTo(t, addr, transport.DNS)
	over := make(ended, 1)
	x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Timeout: time.Hour, Owner: over}
	p.Begin(x)
	<-asked
	e := &p.engine
	e.mu.Lock()
	now := e.now()
	e.wheel.remove(x)
	e.wheel.add(x, now>>tickBits, now>>tickBits)
	e.wakeBy(now - int64(time.Minute))
	e.mu.Unlock()
	if <-over; x.Err == nil {
		t.Error("a reply")
	}
}
