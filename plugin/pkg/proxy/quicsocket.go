package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/nonblock"

	"github.com/quic-go/quic-go"
)

// This file is the socket that all QUIC connections to an upstream share, and how they are opened on it.

// connect opens a connection. For any error of the socket, which may pass, the library gives up; that costs a second
// try, with another socket.
func (q *quicPool) connect(ctx context.Context, cfg *tls.Config) (*quic.Conn, error) {
	for again := false; ; again = true {
		t, remote, err := q.way()
		if err != nil {
			return nil, err
		}
		conf := q.config(q.engine.proxy.transport.conf.Load())
		conn, err := t.Dial(ctx, net.UDPAddrFromAddrPort(remote), q.resuming(cfg), conf)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, quic.ErrTransportClosed):
			q.drop(t)
			if !again {
				continue
			}
		}
		return nil, quicErr("dial", nil, remote, err)
	}
}

// drop closes a socket that has failed. The next connection has another one.
func (q *quicPool) drop(t *quic.Transport) {
	q.mu.Lock()
	if q.transport == t {
		q.transport = nil
	}
	q.mu.Unlock()
	t.Close()
	t.Conn.Close()
}

// way is the socket to dial on, and where to.
func (q *quicPool) way() (t *quic.Transport, to netip.AddrPort, err error) {
	if to, err = q.engine.proxy.where.find(); err == nil {
		t, err = q.socket(to)
	}
	return t, to, err
}

// socket is the transport on its socket to an address, made at first use. Where 127.0.0.1 is no address of the machine,
// a socket of all addresses is one of IPv4 alone to package net. One of names is of both families, as far as there are.
func (q *quicPool) socket(to netip.AddrPort) (*quic.Transport, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return nil, errStopped
	}
	if q.transport != nil {
		return q.transport, nil
	}
	own, _ := q.engine.proxy.transport.conf.Load().localAddr("udp").(*net.UDPAddr)
	network := "udp"
	if to.Addr().Unmap().Is6() && !q.engine.proxy.where.name {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, own)
	if err != nil {
		return nil, err
	}
	q.transport = &quic.Transport{Conn: nonblock.Packets(conn)} // does without calls that a sandbox refuses
	if q.sessions == nil {
		q.sessions, q.tokens = tls.NewLRUClientSessionCache(1), quic.NewLRUTokenStore(1, 4)
	}
	return q.transport, nil
}
