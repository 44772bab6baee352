package dnstap

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	framestream "github.com/farsightsec/golang-framestream"
)

// dialer is the sink of one peer that is connected to. Its queue goes on while there is no connection.
type dialer struct {
	*queue
	network, addr string
	tls           *tls.Config // nil for plain connections
	sendBuffer    int         // octets, for TCP
	logger        WarnLogger

	quit chan struct{}
	done sync.WaitGroup
}

// start connects, and sends from then on. An error is that of the first attempt: others follow.
func (d *dialer) start() error {
	d.quit = make(chan struct{})
	w, conn, err := d.dial()
	d.done.Go(func() { d.run(w, conn) })
	return err
}

// stop sends what waits, as far as the peer takes it, and ends.
func (d *dialer) stop() {
	close(d.quit)
	d.done.Wait()
}

func (d *dialer) dial() (*framestream.Writer, net.Conn, error) {
	plain := net.Dialer{Timeout: handshakeTime}
	var conn net.Conn
	var err error
	if d.tls != nil {
		conn, err = tls.DialWithDialer(&plain, d.network, d.addr, d.tls)
	} else {
		conn, err = plain.Dial(d.network, d.addr)
	}
	if err != nil {
		return nil, nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok && d.sendBuffer > 0 {
		_ = tcp.SetWriteBuffer(d.sendBuffer) // the system may have its own bounds
	}
	w, err := handshake(conn)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return w, conn, nil
}

// run writes what waits to conn, on which w has begun a stream; both are nil without a connection. A write that fails
// makes a new one at once; after that it is tried now and then.
func (d *dialer) run(w *framestream.Writer, conn net.Conn) {
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	again := func() {
		if conn != nil {
			conn.Close()
		}
		var err error
		if w, conn, err = d.dial(); err != nil {
			w, conn = nil, nil
		}
	}
	for {
		begun := d.begun
		if w == nil {
			begun = nil
		}
		select {
		case <-begun:
			if d.gather(d.quit); d.write(conn) != nil {
				again()
			}
		case <-report.C:
			d.report(d.logger)
			if w == nil {
				again()
			}
		case <-d.quit:
			if w != nil {
				if d.write(conn) == nil {
					w.Close()
				}
				conn.Close()
			}
			return
		}
	}
}
