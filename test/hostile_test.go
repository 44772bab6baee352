package test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// hostile is a server of DNS over TCP that sends one reply, whatever it is asked.
func hostile(t *testing.T, reply []byte) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					query, err := readFrame(c)
					if err != nil {
						return
					}
					b := append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
					copy(b[2:4], query)
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func readFrame(c net.Conn) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// prompt is how long an answer may take that costs a thousandth of that. What was wrong took minutes.
const prompt = 5 * time.Second

// TestHostileUpstream asks an upstream whose replies are as dear as can be: the client gets one or hears that there is
// none, others are served meanwhile, and the server stops on time. It does so in either lane; a query with an option that
// only replies have takes the second.
func TestHostileUpstream(t *testing.T) {
	for lane, opt := range map[string][]byte{"wire": nil, "message": {0, 0, wire.TypeOPT, 4, 208, 0, 0, 0, 0, 0, 6, 0, wire.OptionEDE, 0, 2, 0, 0}} {
		for _, r := range wiretest.Hostile() {
			t.Run(lane+"/"+r.Name, func(t *testing.T) {
				i, _, tcp, err := CoreDNSServerAndPorts(".:0 {\nbind 127.0.0.1\nminimal\nloadbalance\ncache\n" +
					"forward . " + hostile(t, r.Message) + " {\nforce_tcp\n}\n}\nother.test:0 {\nbind 127.0.0.1\nwhoami\n}")
				if err != nil {
					t.Fatal(err)
				}
				defer stopsOnTime(t, i)
				query := append(r.Query(), opt...)
				query[11] = byte(min(len(opt), 1))
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					for range 2 { // the second one finds what was kept, if it was
						if m := askWithin(t, tcp, query); m == nil {
							t.Error("got no reply at all")
						}
					}
				}()
				q, _ := question("other.test.", dns.TypeA).Pack()
				for done := false; !done; {
					select {
					case <-answered:
						done = true
					default:
					}
					if m := askWithin(t, tcp, q); m == nil || m.Rcode != dns.RcodeSuccess {
						t.Error("another client is not served meanwhile")
						<-answered
						done = true
					}
				}
			})
		}
	}
}

// TestHostileQuery sends the server queries with such records, which it turns down.
func TestHostileQuery(t *testing.T) {
	_, _, tcp := start(t, ".:0 {\nbind 127.0.0.1\nwhoami\n}")
	for _, r := range wiretest.Hostile() {
		b := append([]byte(nil), r.Message...)
		b[2], b[3] = 0, 0
		for at := 6; at < wire.HeaderLen; at += 2 { // as many records as are looked at
			binary.BigEndian.PutUint16(b[at:], min(1, binary.BigEndian.Uint16(b[at:])))
		}
		if m := askWithin(t, tcp, b); m == nil {
			t.Errorf("%s: got no reply at all", r.Name)
		}
	}
}

// askWithin sends a packet over TCP and reads the reply, nil if there is none in time. Its records may be anything.
func askWithin(t *testing.T, addr string, packet []byte) *dns.Msg {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, prompt)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(prompt))
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)); err != nil {
		return nil
	}
	b, err := readFrame(c)
	if err != nil || len(b) < wire.HeaderLen {
		return nil
	}
	return &dns.Msg{MsgHdr: wire.Header(b)}
}

// stopsOnTime stops the server.
func stopsOnTime(t *testing.T, i *caddy.Instance) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		CoreDNSServerStop(i)
	}()
	select {
	case <-done:
	case <-time.After(2 * prompt):
		t.Error("the server does not stop")
	}
}
