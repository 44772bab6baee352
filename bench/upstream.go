package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
)

// upstream is the servers behind the forwarders. They run in this process, so what they
// cost is the load generator's and not the measured server's.
type upstream struct {
	conns  []*net.UDPConn
	silent *net.UDPConn // takes queries, and never answers
	done   chan error
}

// responder appends the response to a query, or nothing if the query is none.
type responder func(b, query []byte) []byte

// startUpstream begins to answer at n addresses of loopback, 127.0.0.1 and those after it, on one
// free port. The address behind them stays silent. stop ends it.
func startUpstream(n int, answer responder) (u *upstream, err error) {
	for range 20 { // the port may be in use at another address
		if u, err = listenUpstream(n); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	u.done = make(chan error, n)
	for _, conn := range u.conns {
		go func() { u.done <- serveUpstream(conn, answer) }()
	}
	return u, nil
}

func listenUpstream(n int) (*upstream, error) {
	u := new(upstream)
	for i := range n + 1 {
		addr := &net.UDPAddr{IP: net.IPv4(127, 0, 0, byte(1+i))}
		if i > 0 {
			addr.Port = u.port()
		}
		conn, err := net.ListenUDP("udp4", addr)
		if err != nil {
			u.close()
			return nil, err
		}
		if i == n {
			u.silent = conn
			break
		}
		_ = conn.SetReadBuffer(4 << 20) // as much of it as the system grants
		u.conns = append(u.conns, conn)
	}
	return u, nil
}

func (u *upstream) port() int { return u.conns[0].LocalAddr().(*net.UDPAddr).Port }

func (u *upstream) close() {
	for _, conn := range u.conns {
		conn.Close()
	}
	if u.silent != nil {
		u.silent.Close()
	}
}

// stop closes the sockets, waits for the goroutines and returns why they ended if not by stop.
func (u *upstream) stop() (err error) {
	u.close()
	for range u.conns {
		if e := <-u.done; !errors.Is(e, net.ErrClosed) {
			err = fmt.Errorf("upstream: %w", e)
		}
	}
	return err
}

func serveUpstream(conn *net.UDPConn, answer responder) error {
	b := newBatch(conn)
	for {
		n, err := b.read()
		if err != nil {
			return err
		}
		for i := range n {
			query, from := b.received(i)
			if msg := answer(b.space(), query); len(msg) > 0 {
				b.put(msg, from)
			}
		}
		if err := b.flush(); err != nil {
			return err
		}
	}
}

var searchSuffix = appendName(nil, searchOrigin)

// appendAnswer appends the response to query: NXDOMAIN in searchOrigin, else one address
// for A and AAAA, and no data for other types. It appends nothing if query is none.
func appendAnswer(b, query []byte) []byte {
	end := questionEnd(query)
	if end == 0 || query[2]&0x80 != 0 {
		return b
	}
	start := len(b)
	b = append(b, query[:end]...)
	head := b[start:]
	head[2] |= 0x80 // QR; opcode and RD are the query's
	head[3] = 0x80  // RA
	copy(head[6:headerLen], make([]byte, headerLen-6))
	name := query[headerLen : end-4]
	switch qtype := binary.BigEndian.Uint16(query[end-4:]); {
	case bytes.HasSuffix(name, searchSuffix):
		head[3] |= rcodeNXDomain
		head[9] = 1
		b = appendSOA(b, headerLen+len(name)-len(searchSuffix))
	case qtype == typeA:
		head[7] = 1
		b = append(b, 0xc0, headerLen, 0, typeA, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 192, 0, 2, 9)
	case qtype == typeAAAA:
		head[7] = 1
		b = append(b, 0xc0, headerLen, 0, typeAAAA, 0, 1, 0, 0, 0x0e, 0x10, 0, 16,
			0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)
	}
	if binary.BigEndian.Uint16(query[10:]) > 0 {
		b[start+11] = 1
		b = append(b, 0, 0, typeOPT, 0x04, 0xd0, 0, 0, 0, 0, 0, 0) // 1232 octets, no option
	}
	return b
}

// appendSOA appends an SOA record (TTL and minimum 300) whose owner stands at offset
// owner of the message, so that the denial may be cached (RFC 2308 §3).
func appendSOA(b []byte, owner int) []byte {
	b = append(b, 0xc0|byte(owner>>8), byte(owner), 0, 6, 0, 1, 0, 0, 1, 0x2c, 0, 22, 0, 0)
	for _, v := range []uint32{1, 7200, 3600, 1209600, 300} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
