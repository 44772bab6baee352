package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/coredns/coredns/plugin/pkg/replies"

	"github.com/quic-go/quic-go"
)

// This file asks over QUIC (RFC 9250): a query on each stream.

// Codes of RFC 9250 §4.3.
const (
	doqNoError          quic.ApplicationErrorCode = 0
	doqProtocolError    quic.ApplicationErrorCode = 2
	doqNoMore           quic.StreamErrorCode      = 0
	doqRequestCancelled quic.StreamErrorCode      = 3
)

var overQUIC = quicProtocol{alpn: "doq", streams: -1, noError: doqNoError, cancelled: doqRequestCancelled, cached: true}

// errQUICReply is the error of a stream whose octets are no message.
var errQUICReply = errors.New("quic: the stream ended before the reply did")

// carryDoQ is carry over QUIC.
func (p *Proxy) carryDoQ(ctx context.Context, x *Exchange, buf *bytes.Buffer, got func(net.Addr)) ([]byte, error) {
	err := p.engine.quic.ask(ctx, x.Final, got, func(l *quicLink, s *quic.Stream) error {
		buf.Reset()
		return l.askDoQ(ctx, s, x.Query, buf)
	})
	return buf.Bytes(), err
}

// askDoQ asks query, whose id is 0 (RFC 9250 §4.2.1), on s, and reads the reply into buf. An upstream that does not
// answer with one whole message, whose id is 0, does not speak the protocol, which ends the connection (RFC 9250
// §4.3.3).
func (l *quicLink) askDoQ(ctx context.Context, s *quic.Stream, query []byte, buf *bytes.Buffer) error {
	frame := make([]byte, 0, 2+len(query))
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(len(query))), query...)
	if _, err := s.Write(frame); err != nil {
		return l.failed(ctx, "write", err)
	}
	s.Close() // there is one query on each stream
	err := readReply(s, buf)
	switch b := buf.Bytes(); {
	case frameLen(b) == len(b):
	case err != io.EOF && err != nil:
		return l.failed(ctx, "read", err)
	case len(b) > 0:
		l.CloseWithError(doqProtocolError, "")
		fallthrough
	default:
		return l.failed(ctx, "read", errQUICReply)
	}
	if err == nil {
		s.CancelRead(doqNoMore) // some do not end their streams
	}
	buf.Next(2)
	if in, v := replies.Inspect(buf.Bytes()); v == replies.TooShort || v == replies.Malformed || v == replies.CutShort || in.ID != 0 {
		l.CloseWithError(doqProtocolError, "") // who asked sees the reply, and that it is none
	}
	return nil
}

// readReply reads from r until there is one message with its length before it in buf, and what comes together with it.
func readReply(r io.Reader, buf *bytes.Buffer) (err error) {
	for n := 0; err == nil && buf.Len() < frameLen(buf.Bytes()); {
		buf.Grow(bytes.MinRead)
		room := buf.AvailableBuffer()
		room = room[:cap(room)]
		n, err = r.Read(room)
		buf.Write(room[:n])
	}
	return err
}

// frameLen is how long a message that begins with b is, with its length before it: at least that.
func frameLen(b []byte) int {
	if len(b) < 2 {
		return 2
	}
	return 2 + int(binary.BigEndian.Uint16(b))
}
