package dnstap

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	framestream "github.com/farsightsec/golang-framestream"
)

// dialer is the sink of one peer that is connected to. Its queue goes on while there is no connection.
type dialer struct {
	*queue
	patience      uint8 // how often something is sent again before the connection is lost; 0 is lostAfter
	network, addr string
	tls           *tls.Config // nil for plain connections
	sendBuffer    int         // octets, for TCP
	logger        WarnLogger
	absent        func(error) // told why the first attempt to connect failed; may be nil

	quit   chan struct{}
	ending sync.Once
	over   context.Context // of connections; ends lastTime after quit
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start connects, and sends from then on. It does not wait for the peer, which may be silent.
func (d *dialer) start() {
	d.quit = make(chan struct{})
	d.over, d.cancel = context.WithCancel(context.Background())
	d.done.Go(func() {
		s, err := d.dial()
		if err != nil && d.absent != nil && d.over.Err() == nil {
			d.absent(err)
		}
		d.run(s)
	})
}

// end begins to end, if it was started: what waits is sent, as far as the peer takes it in lastTime.
func (d *dialer) end() {
	if d.quit == nil {
		return
	}
	d.ending.Do(func() {
		close(d.quit)
		time.AfterFunc(lastTime, d.cancel)
	})
}

// stop is end, and waits.
func (d *dialer) stop() {
	d.end()
	d.done.Wait()
	d.cancel()
}

// stream is a connection on which frames may be written.
type stream struct {
	net.Conn
	frames *framestream.Writer
	forget func() bool // that the connection is to be closed at the end
}

// Close closes the connection.
func (s *stream) Close() error {
	s.forget()
	return s.Conn.Close()
}

// dial opens a stream to the peer. It is closed at the end of d at the latest.
func (d *dialer) dial() (*stream, error) {
	plain := net.Dialer{Timeout: handshakeTime}
	var conn net.Conn
	var err error
	if d.tls != nil {
		conn, err = (&tls.Dialer{NetDialer: &plain, Config: d.tls}).DialContext(d.over, d.network, d.addr)
	} else {
		conn, err = plain.DialContext(d.over, d.network, d.addr)
	}
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok && d.sendBuffer > 0 {
		_ = tcp.SetWriteBuffer(d.sendBuffer) // the system may have its own bounds
	}
	s := &stream{Conn: conn, forget: context.AfterFunc(d.over, func() { conn.Close() })}
	if s.frames, err = handshake(conn); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// run writes what waits to s, which is nil without a connection. A write that fails makes a new one at once; after that
// it is tried now and then.
func (d *dialer) run(s *stream) {
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	defer d.abandon(d.logger)
	between := d.reporting(d.logger, report.C)
	again := func() {
		if s != nil {
			s.Close()
		}
		s, _ = d.dial()
	}
	// lost is gone for a peer that cannot say so. Systems hold on to one for a quarter of an hour, and take frames for it.
	lost := func() bool {
		if !unheard(s.Conn, cmp.Or(d.patience, lostAfter)) {
			return false
		}
		d.logger.Warningf("Nothing arrives at %s any more: connecting again, what was sent last may be lost", d.addr)
		return true
	}
	for {
		begun := d.begun
		if s == nil {
			begun = nil
		}
		select {
		case <-begun:
			if d.gather(d.quit); d.write(s, between) != nil || lost() {
				again()
			}
			between() // its turn may not come while frames wait
		case <-report.C:
			d.report(d.logger)
			if s == nil || gone(s) || lost() {
				again()
			}
		case <-d.quit:
			if s == nil {
				return
			}
			if d.write(s, between) == nil {
				s.frames.Close()
			}
			s.Close()
			return
		}
	}
}
