package client

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	"google.golang.org/protobuf/encoding/protowire"
)

// Each is called with one object of a list; the bytes are good until it returns.
type Each func(object []byte, e lean.Encoding) error

// ListMeta is a list's metadata.
type ListMeta = lean.ListMeta

var errNoList = errors.New("neither a protobuf nor a JSON list")

// isList tells whether a body of the kind can be a list. What is between us and the API may answer with something else and the
// status 200: taken for a list it would be one of nothing, and all that is known would go.
func isList(kind string) bool { return kind == "" || strings.HasSuffix(kind, "List") }

// readList reads a list from body, one object at a time.
func readList(body io.Reader, each Each) (ListMeta, error) {
	r := bufio.NewReaderSize(body, readBuffer)
	defer drain(r)
	first, err := r.Peek(1)
	for err == nil && first[0] <= ' ' { // white space before JSON
		r.Discard(1)
		first, err = r.Peek(1)
	}
	switch {
	case err != nil:
		return ListMeta{}, unexpectedEOF(err)
	case first[0] == lean.Magic[0]:
		return readProtobufList(r, each)
	case first[0] == '{':
		meta, err := readJSONList(r, each)
		return meta, unexpectedEOF(err)
	}
	return ListMeta{}, errNoList
}

// readProtobufList reads the envelope up to the list in it (field 2 of runtime.Unknown), then the list.
func readProtobufList(r *bufio.Reader, each Each) (meta ListMeta, err error) {
	magic := make([]byte, len(lean.Magic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != lean.Magic {
		return meta, errNoList
	}
	m := message{r: r, left: -1}
	for {
		num, err := m.next()
		if err == io.EOF {
			return meta, errNoList // an envelope without a list
		}
		if err != nil {
			return meta, err
		}
		switch num {
		case 1:
			b, err := m.read(nil)
			if err != nil {
				return meta, err
			}
			if !isList(kindOf(b)) {
				return meta, errNoList
			}
		case 2:
			return readItems(&message{r: r, left: m.size}, each)
		default:
			if err := m.skip(); err != nil {
				return meta, err
			}
		}
	}
}

// kindOf returns the kind in a runtime.TypeMeta: field 2.
func kindOf(b []byte) string {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		if num == 2 && typ == protowire.BytesType {
			kind, _ := protowire.ConsumeBytes(b)
			return string(kind)
		}
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			break
		}
		b = b[n:]
	}
	return ""
}

// readItems reads a list: metadata = 1, items = 2.
func readItems(m *message, each Each) (meta ListMeta, err error) {
	var object []byte
	for {
		num, err := m.next()
		if err == io.EOF {
			return meta, nil
		}
		if err != nil {
			return meta, err
		}
		if num != 1 && num != 2 {
			if err := m.skip(); err != nil {
				return meta, err
			}
			continue
		}
		if object, err = m.read(object); err != nil {
			return meta, err
		}
		if num == 1 {
			err = meta.Decode(object)
		} else {
			err = each(object, lean.Protobuf)
		}
		if err != nil {
			return meta, err
		}
	}
}

// message reads the fields of a protobuf message from a stream. After next, a field of
// length-delimited type has to be taken by read or skip.
type message struct {
	r    *bufio.Reader
	left int64 // bytes of the message to come, or negative: up to the stream's end
	size int64 // of the field at hand
}

// next reads up to the next length-delimited field and returns its number, or io.EOF at the message's end.
func (m *message) next() (protowire.Number, error) {
	for {
		if m.left == 0 {
			return 0, io.EOF
		}
		if _, err := m.r.Peek(1); err != nil {
			if m.left > 0 {
				err = unexpectedEOF(err)
			}
			return 0, err
		}
		tag, err := m.varint()
		if err != nil {
			return 0, err
		}
		num, typ := protowire.DecodeTag(tag)
		switch typ {
		case protowire.VarintType:
			_, err = m.varint()
		case protowire.BytesType:
			var n uint64
			if n, err = m.varint(); err == nil && (n > 1<<40 || m.left >= 0 && int64(n) > m.left) {
				err = io.ErrUnexpectedEOF
			}
			m.size = int64(n)
		default:
			err = fmt.Errorf("field %d: unexpected wire type %d", num, typ)
		}
		if err != nil || typ == protowire.BytesType {
			return num, err
		}
	}
}

func (m *message) varint() (uint64, error) {
	n, err := binary.ReadUvarint(m.r)
	if err != nil {
		return 0, unexpectedEOF(err)
	}
	return n, m.count(int64(protowire.SizeVarint(n)))
}

func (m *message) count(n int64) error {
	if m.left < 0 {
		return nil
	}
	if m.left -= n; m.left < 0 {
		m.left = 0
		return io.ErrUnexpectedEOF
	}
	return nil
}

// read returns the field's bytes, in b if they fit there.
func (m *message) read(b []byte) ([]byte, error) {
	if m.size > maxObject {
		return b, fmt.Errorf("object of %d bytes: %w", m.size, errTooLarge)
	}
	b = resize(b, int(m.size))
	if _, err := io.ReadFull(m.r, b); err != nil {
		return b, unexpectedEOF(err)
	}
	return b, m.count(m.size)
}

func (m *message) skip() error {
	if _, err := io.CopyN(io.Discard, m.r, m.size); err != nil {
		return unexpectedEOF(err)
	}
	return m.count(m.size)
}

// readJSONList walks the members of the list's object. One without items, empty or not, is no list.
func readJSONList(r io.Reader, each Each) (meta ListMeta, err error) {
	kind, items := "", false
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil { // {
		return meta, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return meta, err
		}
		switch name {
		case "metadata":
			err = d.Decode(&meta)
		case "kind":
			err = d.Decode(&kind)
		case "items":
			items = true
			err = readJSONItems(d, each)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return meta, err
		}
	}
	if _, err = d.Token(); err == nil && !(items && isList(kind)) { // }
		err = errNoList
	}
	return meta, err
}

func readJSONItems(d *json.Decoder, each Each) error {
	start, err := d.Token()
	if err != nil || start == nil { // null: an empty list
		return err
	}
	if start != json.Delim('[') {
		return errNoList
	}
	var object json.RawMessage
	for d.More() {
		if err := d.Decode(&object); err != nil {
			return err
		}
		if err := each(object, lean.JSON); err != nil {
			return err
		}
	}
	_, err = d.Token() // ]
	return err
}
