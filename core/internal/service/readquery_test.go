package service

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// offered notes the most memory that it was offered beyond three times what it had given.
type offered struct {
	io.Reader
	given, most int
}

func (o *offered) Read(b []byte) (int, error) {
	o.most = max(o.most, len(b)-3*o.given)
	n, err := o.Reader.Read(b)
	o.given += n
	return n, err
}

// A query comes whole, whatever its length; who says that much will come and sends little has little held.
func TestReadQuery(t *testing.T) {
	all := bytes.Repeat([]byte("abcdefg"), 10000)
	for _, n := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 5000, 65535} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "octets": iotest.OneByteReader,
		} {
			from := &offered{Reader: wrap(bytes.NewReader(all))}
			b, err := new(Limits).ReadQuery(from, n)
			if err != nil || !bytes.Equal(b, all[:n]) || from.given != n {
				t.Errorf("%d in %s: %d octets, %v; %d were read", n, name, len(b), err, from.given)
			}
			if from.most > firstRead {
				t.Errorf("%d in %s: memory for %d octets more than three times those that came", n, name, from.most)
			}
			for short, want := range map[int]error{0: io.EOF, n / 2: io.ErrUnexpectedEOF, n - 1: io.ErrUnexpectedEOF} {
				if short < 0 || short >= n {
					continue
				}
				if short == 0 {
					want = io.EOF
				}
				if b, err := new(Limits).ReadQuery(wrap(bytes.NewReader(all[:short])), n); !errors.Is(err, want) || len(b) != short {
					t.Errorf("%d of %d in %s: %d, %v", short, n, name, len(b), err)
				}
			}
		}
	}
	if b, err := (&Limits{QueryBytes: 100}).ReadQuery(bytes.NewReader(all), 101); b != nil || err != ErrLong {
		t.Errorf("too long: %d octets, %v", len(b), err)
	}
}
