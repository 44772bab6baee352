package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
)

// bareReply is a header without a question, as some servers send it that do not understand a query.
func bareReply(query []byte, rcode int, opt bool) []byte {
	b := make([]byte, 12)
	copy(b, query[:2])
	b[2], b[3] = 0x80, byte(rcode)
	if opt {
		b[11] = 1
		b = append(b, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
	}
	return b
}

// bareUpstreams are upstreams of each transport that give each query to reply.
func bareUpstreams(t *testing.T, reply func(query []byte) []byte) map[string]*Proxy {
	server, roots := authority(t)
	conns := func(conn net.Conn) {
		for {
			q, err := readFrame(conn)
			if err != nil {
				return
			}
			conn.Write(frame(reply(q)))
		}
	}
	secure, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, secure, conns)
	dot := proxyTo(t, secure.Addr().String(), transport.TLS)
	dot.SetTLSConfig(&tls.Config{RootCAs: roots})
	handle := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", doh.MimeType)
		w.Write(reply(queryOf(r)))
	}
	return map[string]*Proxy{
		"udp":  proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(reply(q)) }), transport.DNS),
		"tcp":  proxyTo(t, tcpUpstream(t, conns), transport.DNS),
		"dot":  dot,
		"doh":  httpsUpstream(t, handle),
		"doh3": http3Upstream(t, nil, func(*quic.Conn) {}, handle),
		"doq": quicTo(t, quicUpstream(t, server, nil, func(conn *quic.Conn) {
			streams(conn, func(s *quic.Stream) {
				defer s.Close()
				if b, err := io.ReadAll(s); err == nil {
					s.Write(frame(reply(b[2:])))
				}
			})
		}), roots),
	}
}

// A bare header that tells an error is the reply, and gets the question back.
func TestBareErrors(t *testing.T) {
	var now atomic.Int32 // the rcode, and 16 for an OPT record
	for name, p := range bareUpstreams(t, func(q []byte) []byte { return bareReply(q, int(now.Load())&15, now.Load() > 15) }) {
		p.RandomizeCase()
		for _, rcode := range []int{dns.RcodeFormatError, dns.RcodeServerFailure, dns.RcodeNotImplemented, dns.RcodeRefused} {
			for i, opt := range []bool{false, true} {
				now.Store(int32(16*i + rcode))
				t.Run(fmt.Sprintf("%s %d %t", name, rcode, opt), func(t *testing.T) {
					began := time.Now()
					m, err := ask(p, "WWW.example.org.", Options{ForceTCP: name == "tcp"})
					if err != nil {
						t.Fatal(err)
					}
					if m.Rcode != rcode || len(m.Question) != 1 || m.Question[0].Name != "WWW.example.org." || (m.IsEdns0() != nil) != opt {
						t.Errorf("got %v", m)
					}
					if took := time.Since(began); took > defaultReadTimeout {
						t.Errorf("it took %v", took)
					}
				})
			}
		}
	}
}

// All other headers without a question are noise.
func TestBareNoise(t *testing.T) {
	fits := func(q []byte) []byte { return bareReply(q, dns.RcodeRefused, false) }
	for name, reply := range map[string]func(q []byte) []byte{
		"NOERROR":     func(q []byte) []byte { return bareReply(q, dns.RcodeSuccess, false) },
		"NXDOMAIN":    func(q []byte) []byte { return bareReply(q, dns.RcodeNameError, true) },
		"BADVERS":     func(q []byte) []byte { b := bareReply(q, 0, true); b[17] = 1; return b },
		"other id":    func(q []byte) []byte { b := fits(q); b[0] ^= 1; return b },
		"a query":     func(q []byte) []byte { b := fits(q); b[2] = 0; return b },
		"announced":   func(q []byte) []byte { b := fits(q); b[5] = 1; return b },
		"an answer":   func(q []byte) []byte { b := append(fits(q), 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0); b[7] = 1; return b },
		"not OPT":     func(q []byte) []byte { b := bareReply(q, dns.RcodeRefused, true); b[14] = 1; return b },
		"trailing":    func(q []byte) []byte { return append(fits(q), 0) },
		"cut short":   func(q []byte) []byte { b := bareReply(q, dns.RcodeRefused, true); return b[:len(b)-1] },
		"odd options": func(q []byte) []byte { b := bareReply(q, dns.RcodeRefused, true); b[22] = 1; return append(b, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
				send(reply(q))
				send(replyTo(q))
			}), transport.DNS)
			if m, err := ask(p, "www.example.org.", Options{}); err != nil || len(m.Answer) != 1 {
				t.Errorf("got %v, %v", m, err)
			}
		})
	}
}

// An upstream that is known by its cookie says no word without it (RFC 7873 §5.3).
func TestBareErrorWithoutCookie(t *testing.T) {
	first := true
	p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) {
		if !first {
			send(bareReply(q, dns.RcodeRefused, false))
		}
		first = false
		send(withServerCookie(replyTo(q), q))
	}), transport.DNS)
	for range 2 {
		ended := make(chan error, 1)
		x := &Exchange{Cookie: true, Query: cookieQuery(), Owner: enderFunc(func(x *Exchange) {
			err := x.Err
			if err == nil && x.Facts.Rcode != 0 {
				err = fmt.Errorf("rcode %d", x.Facts.Rcode)
			}
			ended <- err
		})}
		p.Begin(x)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// cookieQuery is a query with an OPT record.
func cookieQuery() []byte {
	b, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).SetEdns0(1232, false).Pack()
	return b
}

// withServerCookie gives reply an OPT record with the client cookie of query and a server cookie.
func withServerCookie(reply, query []byte) []byte {
	client, _ := replies.Option(query, replies.FindOPT(query), 10)
	data := append(append([]byte(nil), client[:8]...), 1, 2, 3, 4, 5, 6, 7, 8)
	reply[11] = 1
	reply = append(reply, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, byte(4+len(data)), 0, 10)
	return append(binary.BigEndian.AppendUint16(reply, uint16(len(data))), data...)
}
