// Package doh carries DNS messages in HTTP requests and responses (RFC 8484).
//
//	client: message ──NewRequest──▶ http.Request … http.Response ──ResponseToMsg──▶ message
//	server: http.Request ──RequestToMsg──▶ message
//
// What comes in is limited to 64 KiB before anything is decoded. The functions keep nothing and may be called from any
// number of goroutines at the same time. The functions may be called by any goroutine. Start at Packet.
package doh

import (
	"errors"
	"fmt"
	"io"
)

const (
	// MimeType is the media type of a DNS message (RFC 8484 §6).
	MimeType = "application/dns-message"
	// Path is where the server is asked. Other paths are possible, but this is the one that everybody uses.
	Path = "/dns-query"
)

// maxSize is how long a message may be, in octets.
const maxSize = 64 << 10

// errTooLong says that a message is longer than maxSize.
var errTooLong = errors.New("dns message is longer than 64 KiB")

func errMethod(method string) error { return fmt.Errorf("method not allowed: %s", method) }

// readMessage reads all of body, and closes it.
func readMessage(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, io.ErrUnexpectedEOF
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxSize {
		return nil, errTooLong
	}
	return b, nil
}
