package client

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// Watch is a stream of events. See Client.Watch.
type Watch struct {
	body  io.ReadCloser
	r     *bufio.Reader
	begun bool
	text  *json.Decoder // in a JSON stream
	head  [4]byte       // of a frame of a protobuf stream: its length
	frame []byte        // the frame; events borrow from it
}

// EventType says what happened to an object.
type EventType uint8

// The types of events.
const (
	Added EventType = iota
	Modified
	Deleted
	// Bookmark says up to which resource version everything has been told. Only its object's metadata counts.
	Bookmark
)

// Event is one event. Its object can be decoded by package lean until Next is called again.
type Event struct {
	Type     EventType
	Object   []byte
	Encoding lean.Encoding
}

const (
	readBuffer = 16 << 10
	// maxObject is ten times what an API server accepts as an object.
	maxObject = 16 << 20
)

var errTooLarge = errors.New("object too large")

// ErrNoEvent tells that a watch has something else than events, such as a list. What it was to tell is not known then.
var ErrNoEvent = errors.New("no event")

func newWatch(body io.ReadCloser) *Watch {
	return &Watch{body: body, r: bufio.NewReaderSize(body, readBuffer)}
}

// Next waits for the next event. It returns io.EOF when the server has ended the watch as it does
// from time to time, a StatusError of k8s.io/apimachinery/pkg/api/errors when the server
// sends one, ErrNoEvent for what is none, and other errors for a broken connection. After an error the watch is over.
func (w *Watch) Next() (Event, error) {
	if !w.begun {
		first, err := w.r.Peek(1)
		if err != nil {
			return Event{}, err
		}
		if w.begun = true; first[0] != 0 { // frames begin with their length, of which the first byte is zero
			w.text = json.NewDecoder(w.r)
		}
	}
	if w.text != nil {
		return w.nextText()
	}
	return w.nextFrame()
}

func (w *Watch) nextText() (Event, error) {
	var e struct {
		Type   string
		Object json.RawMessage
	}
	if err := w.text.Decode(&e); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			err = noEvent(err)
		}
		return Event{}, err
	}
	t, err := eventType([]byte(e.Type), e.Object)
	if err != nil {
		return Event{}, err
	}
	return Event{Type: t, Object: e.Object, Encoding: lean.JSON}, nil
}

// nextFrame reads a length of four bytes and a WatchEvent of that length.
func (w *Watch) nextFrame() (Event, error) {
	if _, err := io.ReadFull(w.r, w.head[:]); err != nil {
		return Event{}, err
	}
	n := binary.BigEndian.Uint32(w.head[:])
	if n > maxObject {
		return Event{}, noEvent(fmt.Errorf("watch event of %d bytes: %w", n, errTooLarge))
	}
	w.frame = resize(w.frame, int(n))
	if _, err := io.ReadFull(w.r, w.frame); err != nil {
		return Event{}, unexpectedEOF(err)
	}
	typ, enveloped, err := lean.Event(w.frame)
	if err != nil {
		return Event{}, noEvent(err)
	}
	t, err := eventType(typ, enveloped)
	if err != nil {
		return Event{}, err
	}
	_, object, err := lean.Unwrap(enveloped)
	if err != nil {
		return Event{}, noEvent(err)
	}
	return Event{Type: t, Object: object, Encoding: lean.Protobuf}, nil
}

// eventType returns the type of an event, or as an error the status that an event of type ERROR has as its object.
func eventType(typ, object []byte) (EventType, error) {
	switch string(typ) {
	case "ADDED":
		return Added, nil
	case "MODIFIED":
		return Modified, nil
	case "DELETED":
		return Deleted, nil
	case "BOOKMARK":
		return Bookmark, nil
	case "ERROR":
		return 0, statusError(object)
	}
	return 0, noEvent(fmt.Errorf("watch event of unknown type %q", typ))
}

func noEvent(err error) error { return fmt.Errorf("%w: %w", ErrNoEvent, err) }

// Close ends the watch.
func (w *Watch) Close() error { return w.body.Close() }

// resize returns b with length n, keeping its memory if it is large enough.
func resize(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	return make([]byte, n, n+n/4)
}

func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
