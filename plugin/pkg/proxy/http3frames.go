package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/coredns/coredns/plugin/pkg/doh"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// Frames of RFC 9114 §7.2.
const (
	frameData        = 0x0
	frameHeaders     = 0x1
	frameCancelPush  = 0x3
	frameSettings    = 0x4
	framePushPromise = 0x5
	frameGoAway      = 0x7
	frameMaxPushID   = 0xd
)

// ofHTTP2 reports whether a frame is one that HTTP/2 has, and HTTP/3 forbids (RFC 9114 §11.2.1).
func ofHTTP2(kind uint64) bool { return kind == 0x2 || kind == 0x6 || kind == 0x8 || kind == 0x9 }

// Codes of RFC 9114 §8.1, and one of RFC 9204 §6.
const (
	codeNoError              quic.ApplicationErrorCode = 0x100
	codeStreamCreation       quic.ApplicationErrorCode = 0x103
	codeClosedCriticalStream quic.ApplicationErrorCode = 0x104
	codeFrameUnexpected      quic.ApplicationErrorCode = 0x105
	codeFrame                quic.ApplicationErrorCode = 0x106
	codeExcessiveLoad        quic.ApplicationErrorCode = 0x107
	codeID                   quic.ApplicationErrorCode = 0x108
	codeMissingSettings      quic.ApplicationErrorCode = 0x10a
	codeRequestRejected      quic.StreamErrorCode      = 0x10b
	codeRequestCancelled     quic.StreamErrorCode      = 0x10c
	codeDecompression        quic.ApplicationErrorCode = 0x200
)

// http3Fault is what an upstream did that HTTP/3 does not allow. It ends the connection.
type http3Fault struct {
	code quic.ApplicationErrorCode
	what string
}

// Error implements error.
func (f http3Fault) Error() string { return "doh: the upstream breaks HTTP/3: " + f.what }

var (
	errNoResponse = errors.New("doh: the stream ended before the response did")
	errNoStatus   = errors.New("doh: the response has no status")
)

// appendHTTP3 appends the frames of r to b.
func (r *httpRequest) appendHTTP3(b []byte) []byte {
	var block bytes.Buffer
	header := qpack.NewEncoder(&block)
	write := func(name, value string) { header.WriteField(qpack.HeaderField{Name: name, Value: value}) }
	write(":authority", r.host)
	write(":method", r.method)
	write(":path", r.path)
	write(":scheme", "https")
	write("accept", doh.MimeType)
	write("content-type", doh.MimeType)
	if r.body != nil {
		write("content-length", strconv.Itoa(len(r.body)))
	}
	write("accept-encoding", "gzip")
	write("user-agent", "quic-go HTTP/3")
	b = append(quicvarint.Append(quicvarint.Append(b, frameHeaders), uint64(block.Len())), block.Bytes()...)
	if r.body != nil {
		b = append(quicvarint.Append(quicvarint.Append(b, frameData), uint64(len(r.body))), r.body...)
	}
	return b
}

// nextFrame takes the frame that b begins with.
func nextFrame(b []byte) (kind uint64, payload, rest []byte, ok bool) {
	kind, n, err := quicvarint.Parse(b)
	if err != nil {
		return 0, nil, nil, false
	}
	b = b[n:]
	size, n, err := quicvarint.Parse(b)
	if err != nil || size > uint64(len(b)-n) {
		return 0, nil, nil, false
	}
	b = b[n:]
	return kind, b[:size:size], b[size:], true
}

// http3Response is the response in b, which is all that came on a stream.
func http3Response(b []byte) (*httpResponse, error) {
	r := new(httpResponse)
	final, trailer := false, false
	for len(b) > 0 {
		kind, payload, rest, ok := nextFrame(b)
		if !ok {
			return nil, http3Fault{codeFrame, "a frame is cut short"}
		}
		b = rest
		switch {
		case kind == frameHeaders:
			if trailer {
				return nil, http3Fault{codeFrameUnexpected, "a header behind the trailer"}
			}
			if trailer = final; trailer {
				break
			}
			if err := r.header(payload); err != nil {
				return nil, err
			}
			if final = r.status >= http.StatusOK; !final { // a provisional one
				*r = httpResponse{}
			}
		case kind == frameData:
			if !final || trailer {
				return nil, http3Fault{codeFrameUnexpected, "data without a header"}
			}
			if r.body == nil {
				r.body = payload
			} else {
				r.body = append(r.body, payload...) // never into what follows, see nextFrame
			}
		case kind == frameCancelPush, kind == frameSettings, kind == frameGoAway, kind == frameMaxPushID, ofHTTP2(kind):
			return nil, http3Fault{codeFrameUnexpected, "on a request's stream"}
		case kind == framePushPromise:
			return nil, http3Fault{codeID, "a push"}
		}
	}
	if !final {
		return nil, errNoResponse
	}
	return r, nil
}

// header takes the fields of a header that counts.
func (r *httpResponse) header(block []byte) error {
	next := qpack.NewDecoder().Decode(block)
	for {
		f, err := next()
		switch {
		case err == io.EOF:
			if r.status < 100 || r.status > 999 {
				return errNoStatus
			}
			return nil
		case err != nil:
			return http3Fault{codeDecompression, "a header"}
		case f.Name == ":status":
			r.status, _ = strconv.Atoi(f.Value)
		default:
			r.field(f.Name, f.Value)
		}
	}
}
